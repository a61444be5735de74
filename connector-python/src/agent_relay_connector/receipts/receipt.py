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
    lacks = [_NO_REQUEST] if request is None else []
    lacks += [_NO_DECISION] if decision is None else []
    lacks += [_NO_DIGEST] if decision is not None and is_unbound(decision) else []
    lacks += [_lack_of_credential(one) for one, credential in zip(signed, found) if credential is None]
    if request is None or decision is None or lacks:
        message = f"There is no receipt: {'; '.join(why for _, why in lacks)}."
        raise RelayError("receipt_incomplete", message, missing=[part for part, _ in lacks])
    tokens = [credential.token for credential in found if credential is not None]
    return {"version": 1, "request": request, "decision": decision, "credentials": tokens}


# Parts of a receipt that are not there, and why there can be no receipt without them.
_NO_REQUEST = (
    "request",
    "this agent neither signed nor received the request (one over HTTP is signed by the gateway)",
)
_NO_DECISION = ("decision", "this agent neither signed nor received a decision on the request")
_NO_DIGEST = ("request_sha256 of the decision", "the decision carries no request_sha256")


def _lack_of_credential(envelope: Envelope) -> tuple[str, str]:
    signer = "a gateway" if envelope["key_id"].startswith(GATEWAY_KEY_PREFIX) else "a key without a credential"
    sender = envelope["from"]
    return f"credential of {sender}", f"the {envelope['type']} of {sender} was signed by {signer}"


def is_unbound(decision: Envelope) -> bool:
    """True for a decision that does not say on which request it was made."""
    return "request_sha256" not in decision["payload"]


def is_of(credential: Credential | Voucher, envelope: Envelope) -> bool:
    """True for a credential of the key that an envelope says it is signed with, of its sender."""
    return credential.agent == envelope["from"] and credential.key_id == envelope["key_id"]
