"""Builds receipts."""

import hashlib
from collections.abc import Sequence

from ..base64url import encode_base64url
from ..canonical import signed_part, signed_text
from ..credentials.read_credential import Credential
from ..errors import RelayError
from ..types import Envelope
from .contract import Receipt


def request_digest(request: Envelope) -> str:
    """What a decision says of the request that it decides: base64url SHA-256 of its canonical text with `sig`.

    request: as it was received and verified.
    """
    text = signed_text(signed_part(request), request["sig"])
    return encode_base64url(hashlib.sha256(text.encode()).digest())


def build_receipt(
    request: Envelope | None, decision: Envelope | None, credentials: Sequence[Credential]
) -> Receipt:
    """Raises `receipt_incomplete`, with what is `missing`: `request`, `decision`, `credential of <agent>`.

    A key without credential has none: a gateway's, an HMAC key, a listed one.
    """
    signed = [envelope for envelope in (request, decision) if envelope is not None]
    found = [next((one for one in credentials if is_of(one, envelope)), None) for envelope in signed]
    missing = ["request"] if request is None else []
    missing += ["decision"] if decision is None else []
    missing += [f"credential of {one['from']}" for one, credential in zip(signed, found) if credential is None]
    if request is None or decision is None or missing:
        raise RelayError("receipt_incomplete", missing=missing)
    tokens = [credential.token for credential in found if credential is not None]
    return {"version": 1, "request": request, "decision": decision, "credentials": tokens}


def is_of(credential: Credential, envelope: Envelope) -> bool:
    """True for a credential of the key that an envelope says it is signed with, of its sender."""
    return credential.agent == envelope["from"] and credential.key_id == envelope["key_id"]
