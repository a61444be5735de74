"""Seals and opens payloads. Source: docs/protocol.md#sealed-payloads."""

from collections.abc import Mapping
from typing import Any

from cryptography.exceptions import InvalidTag

from ..base64url import decode_base64url, encode_base64url
from ..credentials.public_jwk import thumbprint_of
from ..errors import RelayError
from ..jcs import canonicalize
from ..limits import MAX_SEALED_BYTES
from ..payload_rules import is_payload
from ..strict_json import members_of, parse_json
from ..types import Envelope, JsonObject
from .hpke import ENC_BYTES, TAG_BYTES, Ciphertext, open_bytes, seal_bytes
from .own_sealing_keys import OwnSealingKeys

_VERSION = 1
_INFO = b"agent-relay sealed payload v1"
_SURROUNDINGS = ("from", "id", "task_id", "to", "type")
_NO_PAYLOAD = 'The payload is not a JSON object that can be sent, such as {"message": "hi"}. JSON has no NaN or Infinity.'


def is_sealed(payload: JsonObject) -> bool:
    """True for a payload with `sealed` as its only member: the name, alone, means nothing else."""
    return list(payload) == ["sealed"]


def plaintext_of(payload: JsonObject) -> bytes:
    """What is sealed of a payload. Later changes of it have no effect.

    Raises `invalid_envelope` for what the relay would not take as a payload, `frame_too_large` for more than 23,000
    bytes of JSON.
    """
    try:
        text = canonicalize(payload)
    except ValueError:
        text = ""
    if not text or not is_payload(parse_json(text)):
        raise RelayError("invalid_envelope", _NO_PAYLOAD)
    plaintext = text.encode()
    if len(plaintext) > MAX_SEALED_BYTES:
        raise RelayError("frame_too_large", f"The JSON of the payload is over {MAX_SEALED_BYTES} bytes.")
    return plaintext


def seal_payload(plaintext: bytes, surroundings: Mapping[str, Any], recipient_key: str) -> JsonObject:
    """surroundings: the envelope's members; it opens in no other. recipient_key: X25519, base64url, of a credential."""
    key = decode_base64url(recipient_key)
    if key is None:
        raise RelayError("recipient_unsealable")
    kid = thumbprint_of(recipient_key, "X25519")
    sealed = seal_bytes(key, plaintext, _INFO, _aad(surroundings, kid))
    members = {"v": _VERSION, "kid": kid, "enc": encode_base64url(sealed.enc), "ct": encode_base64url(sealed.ct)}
    return {"sealed": members}


def open_payload(envelope: Envelope, keys: OwnSealingKeys) -> JsonObject | None:
    """The payload that was sealed. Never raises.

    None when the envelope's is not one that was sealed for it, to one of these keys.
    """
    found = _read_sealed(envelope["payload"])
    key = None if found is None else keys.get(found[0])
    if found is None or key is None:
        return None
    kid, ciphertext = found
    try:
        payload = parse_json(open_bytes(key, ciphertext, _INFO, _aad(envelope, kid)).decode())
    except (InvalidTag, ValueError):
        return None
    return members_of(payload) if is_payload(payload) else None


def _aad(surroundings: Mapping[str, Any], kid: str) -> bytes:
    members = {name: surroundings[name] for name in _SURROUNDINGS if name in surroundings}
    return canonicalize({**members, "kid": kid, "v": _VERSION}).encode()


def _read_sealed(payload: JsonObject) -> tuple[str, Ciphertext] | None:
    """The one member and its four, nothing else, each in its one spelling."""
    members = members_of(payload.get("sealed"))
    version, kid = members.get("v"), members.get("kid")
    if len(payload) != 1 or len(members) != 4 or not isinstance(kid, str):
        return None
    if version != _VERSION or isinstance(version, bool):
        return None
    enc, ct = decode_base64url(members.get("enc")), decode_base64url(members.get("ct"))
    if enc is None or ct is None or len(enc) != ENC_BYTES:
        return None
    return (kid, Ciphertext(enc, ct)) if 0 <= len(ct) - TAG_BYTES <= MAX_SEALED_BYTES else None
