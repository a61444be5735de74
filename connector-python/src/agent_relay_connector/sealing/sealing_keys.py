"""The X25519 keys of this agent: the present one, and those before it that something may still be sealed to."""

from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ..base64url import decode_base64url, encode_base64url
from ..credentials.public_jwk import thumbprint_of
from ..errors import RelayError
from .hpke import raw_public

_KEY_BYTES = 32


class SealingKeys:
    def __init__(self, private_keys: Sequence[str]) -> None:
        """private_keys: 32 bytes each, in base64url. Raises `invalid_key`."""
        keys = [_imported(text) for text in private_keys]
        # By thumbprint.
        self._keys = {thumbprint_of(encode_base64url(raw_public(key)), "X25519"): key for key in keys}

    def get(self, kid: str) -> X25519PrivateKey | None:
        """kid: thumbprint of the public key."""
        return self._keys.get(kid)


def _imported(text: str) -> X25519PrivateKey:
    data = decode_base64url(text)
    if data is None or len(data) != _KEY_BYTES:
        raise RelayError("invalid_key", "A sealing key is not 32 bytes in base64url.")
    return X25519PrivateKey.from_private_bytes(data)
