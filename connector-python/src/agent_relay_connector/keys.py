"""Keys that sign and verify. What cannot be used raises RelayError `invalid_key`, whose texts hold no key."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from .base64url import decode_base64url, encode_base64url
from .errors import RelayError
from .given import AgentKey, TrustedKey
from .small_order import is_small_order_ed25519

_KEY_BYTES = 32


@dataclass(frozen=True)
class SigningKey:
    sign: Callable[[bytes], bytes]
    # base64url; None of HMAC.
    public_key: str | None


@dataclass(frozen=True)
class VerifyKey:
    # (signature, message): True when the signature is the key's.
    verifies: Callable[[bytes, bytes], bool]


def signing_key(key: AgentKey) -> SigningKey:
    if key.get("alg") == "hmac-sha256":
        secret = _secret(key.get("secret"))
        return SigningKey(lambda message: hmac.digest(secret, message, "sha256"), None)
    seed = decode_base64url(key.get("private_key"))
    if key.get("alg") != "ed25519" or seed is None or len(seed) != _KEY_BYTES:
        raise RelayError("invalid_key")
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return SigningKey(private.sign, encode_base64url(public))


def verify_key(key: TrustedKey) -> VerifyKey:
    if key.get("alg") == "hmac-sha256":
        secret = _secret(key.get("secret"))
        return VerifyKey(lambda sig, message: hmac.compare_digest(sig, hmac.digest(secret, message, "sha256")))
    if key.get("alg") != "ed25519":
        raise RelayError("invalid_key")
    return ed25519_verify_key(key.get("public_key"))


def ed25519_verify_key(public_key: object) -> VerifyKey:
    """public_key: base64url, 32 bytes."""
    point = decode_base64url(public_key)
    if point is None or len(point) != _KEY_BYTES or is_small_order_ed25519(point):
        raise RelayError("invalid_key")
    public = Ed25519PublicKey.from_public_bytes(point)

    def verifies(sig: bytes, message: bytes) -> bool:
        try:
            public.verify(sig, message)
        except InvalidSignature:
            return False
        return True

    return VerifyKey(verifies)


def _secret(text: object) -> bytes:
    secret = decode_base64url(text)
    if secret is None or len(secret) < _KEY_BYTES:
        raise RelayError("invalid_key")
    return secret
