"""Builds receipts."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ..base64url import encode_base64url
from ..canonical import signed_part, signed_text
from ..credentials.read_credential import Credential
from ..errors import RelayError
from ..gateway_keys import GATEWAY_KEY_PREFIX
from ..types import Envelope
from .contract import Receipt


@dataclass(frozen=True)
class Voucher:
    """What a receipt needs of the credential of a key."""

    agent: str
    key_id: str
    token: str


def request_digest(request: Envelope) -> str:
    """What a decision says of the request that it decides: base64url SHA-256 of its canonical text with `sig`.

    request: as it was received and verified.
    """
    return digest_of(signed_bytes(request))


def signed_bytes(envelope: Envelope) -> bytes:
    """The canonical text of an envelope with `sig`, in UTF-8."""
    return signed_text(signed_part(envelope), envelope["sig"]).encode()


def digest_of(data: bytes) -> str:
    """data: the signed_bytes of a request."""
    return encode_base64url(hashlib.sha256(data).digest())


def build_receipt(
    request: Envelope | None, decision: Envelope | None, credentials: Sequence[Voucher]
) -> Receipt:
    """Raises `receipt_incomplete`, with what is `missing`.

    That is `request`, `decision`, `request_sha256 of the decision`, `credential of <agent>`. A key without credential has
    none: a gateway's, an HMAC key, a listed one.
    """
    signed = [envelope for envelope in (request, decision) if envelope is not None]
    found = [next((one for one in credentials if is_of(one, envelope)), None) for envelope in signed]
    lacks = [] if request is not None else [_NO_SESSION if decision is None else _NO_REQUEST]
    lacks += [_NO_DECISION] if decision is None else []
    lacks += [_NO_DIGEST] if decision is not None and is_unbound(decision) else []
    lacks += [_lack_of_credential(one) for one, credential in zip(signed, found) if credential is None]
    if request is None or decision is None or lacks:
        raise _incomplete(lacks)
    tokens = [credential.token for credential in found if credential is not None]
    return {"version": 1, "request": request, "decision": decision, "credentials": tokens}


@dataclass(frozen=True)
class _Lack:
    """A part of a receipt that is not there, why there can be no receipt without it, and what to do."""

    part: str
    why: str
    hint: str


def _incomplete(lacks: Sequence[_Lack]) -> RelayError:
    """Of a session without request and decision it says only that: most likely its id is wrong."""
    # No agent has a receipt of what was signed so: the other agent need not be asked, nor anything else be mended.
    final = [lack for lack in lacks if lack is _NO_DIGEST or lack.part.startswith(_CREDENTIAL_OF)]
    told = [_NO_SESSION] if _NO_SESSION in lacks else final or lacks
    message = f"There is no receipt: {'; '.join(lack.why for lack in told)}."
    hint = " ".join(dict.fromkeys(lack.hint for lack in told))
    return RelayError("receipt_incomplete", message, hint, missing=[lack.part for lack in lacks])


_CREDENTIAL_OF = "credential of "
_NO_SESSION = _Lack(
    "request",
    "this agent has neither signed nor received anything of such a session since it was started",
    "Check the session's id. It has the receipts of the newest 1000 sessions whose request and decision it signed or"
    " received itself; the other agent of the session may have this one.",
)
_NO_REQUEST = _Lack(
    "request",
    "this agent neither signed nor verified the request (one over HTTP is signed by the gateway)",
    "Ask the other agent of the session for its receipt. One over HTTP has none: request with the agent's own key.",
)
_NO_DECISION = _Lack(
    "decision",
    "this agent neither signed nor verified a decision on the request",
    "There is one once the session is decided, and not of a decision that was delivered unverified, of a key without a credential."
    " Where it was decided while this agent was away, the other agent has the receipt.",
)
_NO_DIGEST = _Lack(
    "request_sha256 of the decision",
    "the decision carries no request_sha256",
    "The target has to be online when it is requested, and to decide with the connector that received the request.",
)


def _lack_of_credential(envelope: Envelope) -> _Lack:
    signer = "a gateway" if envelope["key_id"].startswith(GATEWAY_KEY_PREFIX) else "a key without a credential"
    sender = envelope["from"]
    return _Lack(
        f"{_CREDENTIAL_OF}{sender}",
        f"the {envelope['type']} of {sender} was signed by {signer}",
        "Both agents need a credential, of keys of their own, before the request: request another session then.",
    )


def is_unbound(decision: Envelope) -> bool:
    """True for a decision that does not say on which request it was made."""
    return "request_sha256" not in decision["payload"]


def is_of(credential: Credential | Voucher, envelope: Envelope) -> bool:
    """True for a credential of the key that an envelope says it is signed with, of its sender."""
    return credential.agent == envelope["from"] and credential.key_id == envelope["key_id"]
