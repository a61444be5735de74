"""Compact JSON Web Signatures by Ed25519. Source: RFC 7515, sections 5.2 and 7.1; RFC 8037, section 3.1."""

from ..base64url import decode_base64url
from ..keys import VerifyKey

_SIGNATURE_BYTES = 64


def parts_of(token: str) -> tuple[str, str, bytes] | None:
    """Header and payload, both still encoded, and the signature; None for what cannot be such a token."""
    parts = token.split(".")
    signature = decode_base64url(parts[2]) if len(parts) == 3 else None
    if signature is None or len(signature) != _SIGNATURE_BYTES:
        return None
    return parts[0], parts[1], signature


def is_token_signed_by(key: VerifyKey, token: str) -> bool:
    """True when the token is signed by the Ed25519 key, whatever its header says of keys and algorithms.

    Never raises.
    """
    parts = parts_of(token)
    if parts is None or not token.isascii():
        return False
    header, payload, signature = parts
    return key.verifies(signature, f"{header}.{payload}".encode())
