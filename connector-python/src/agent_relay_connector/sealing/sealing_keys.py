"""Keys that payloads are sealed to."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ..base64url import decode_base64url, encode_base64url
from ..credentials.public_jwk import thumbprint_of
from ..errors import RelayError
from ..given import SealingKey
from .hpke import raw_public

_KEY_BYTES = 32


@dataclass(frozen=True)
class ReadSealingKey:
    private: X25519PrivateKey
    # Epoch milliseconds.
    until: float


class SealingKeys(Mapping[str, ReadSealingKey]):
    """By the thumbprint of the public key; immutable."""

    def __init__(self, given: Sequence[str | SealingKey] = ()) -> None:
        """given: private halves in base64url, or such with their end. Raises `invalid_key`."""
        self._keys = dict(_read(SealingKey(key) if isinstance(key, str) else key) for key in given)

    def __getitem__(self, kid: str) -> ReadSealingKey:
        return self._keys[kid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def _read(given: SealingKey) -> tuple[str, ReadSealingKey]:
    data = decode_base64url(given.private_key)
    if data is None or len(data) != _KEY_BYTES:
        raise RelayError("invalid_key", "A sealing key is not 32 bytes in base64url.")
    key = X25519PrivateKey.from_private_bytes(data)
    until = float("inf") if given.until is None else given.until
    return thumbprint_of(encode_base64url(raw_public(key)), "X25519"), ReadSealingKey(key, until)
