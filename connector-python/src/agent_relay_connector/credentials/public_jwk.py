"""Public keys of the two curves, as JSON Web Keys. Source: RFC 8037, section 2."""

import hashlib
from typing import Literal

from ..base64url import decode_base64url, encode_base64url
from ..jcs import canonicalize
from ..small_order import is_small_order_ed25519, is_small_order_x25519
from ..strict_json import members_of

# One for signatures, one for sealed payloads.
Curve = Literal["Ed25519", "X25519"]
_KEY_BYTES = 32


def read_public_jwk(value: object, curve: Curve) -> str | None:
    """The `x` of a public JWK of the curve. Other members do not count.

    None when the value is anything else: a private key, an `x` that is not the one spelling of 32 bytes, a point of
    small order.
    """
    members = members_of(value)
    x = members.get("x")
    if members.get("kty") != "OKP" or members.get("crv") != curve or "d" in members or not isinstance(x, str):
        return None
    return x if is_public_key(x, curve) else None


def is_public_key(x: object, curve: Curve) -> bool:
    """True for a public key that can be used, in base64url."""
    point = decode_base64url(x)
    if point is None or len(point) != _KEY_BYTES:
        return False
    return not (is_small_order_ed25519(point) if curve == "Ed25519" else is_small_order_x25519(point))


def thumbprint_of(x: str, curve: Curve) -> str:
    """Identifies the key, in base64url. Source: RFC 7638, section 3."""
    members = {"crv": curve, "kty": "OKP", "x": x}
    return encode_base64url(hashlib.sha256(canonicalize(members).encode()).digest())
