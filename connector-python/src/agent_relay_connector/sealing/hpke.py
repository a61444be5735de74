"""HPKE in base mode with the one suite of sealed payloads, for one message.

DHKEM(X25519, HKDF-SHA256), HKDF-SHA256, AES-128-GCM. Source: RFC 9180, sections 4.1, 5.1.1, 6.1 and 7.
"""

import hmac
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

# Bytes of an encapsulated key, and of what authenticates a ciphertext.
ENC_BYTES = 32
TAG_BYTES = 16

_VERSION = b"HPKE-v1"
_KEM_SUITE = b"KEM" + (0x0020).to_bytes(2, "big")
_SUITE = b"HPKE" + (0x0020).to_bytes(2, "big") + (0x0001).to_bytes(2, "big") + (0x0001).to_bytes(2, "big")
_SECRET_BYTES, _KEY_BYTES, _NONCE_BYTES = 32, 16, 12
_MODE_BASE = b"\x00"


@dataclass(frozen=True)
class Ciphertext:
    # The encapsulated key.
    enc: bytes
    ct: bytes


def seal_bytes(public_key: bytes, plaintext: bytes, info: bytes, aad: bytes) -> Ciphertext:
    """public_key: of the recipient, 32 bytes. Raises ValueError for a key of small order."""
    return seal_with(X25519PrivateKey.generate(), public_key, plaintext, info, aad)


def seal_with(
    ephemeral: X25519PrivateKey, public_key: bytes, plaintext: bytes, info: bytes, aad: bytes
) -> Ciphertext:
    """`seal_bytes` with a given ephemeral key, which must never be used twice."""
    enc = raw_public(ephemeral)
    shared = ephemeral.exchange(X25519PublicKey.from_public_bytes(public_key))
    key, nonce = _key_schedule(_shared_secret(shared, enc + public_key), info)
    return Ciphertext(enc, AESGCM(key).encrypt(nonce, plaintext, aad))


def open_bytes(private_key: X25519PrivateKey, sealed: Ciphertext, info: bytes, aad: bytes) -> bytes:
    """Raises ValueError or InvalidTag when the ciphertext was not sealed to this key in this context."""
    shared = private_key.exchange(X25519PublicKey.from_public_bytes(sealed.enc))
    key, nonce = _key_schedule(_shared_secret(shared, sealed.enc + raw_public(private_key)), info)
    return AESGCM(key).decrypt(nonce, sealed.ct, aad)


def raw_public(private_key: X25519PrivateKey) -> bytes:
    return private_key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)


def _shared_secret(shared: bytes, kem_context: bytes) -> bytes:
    """ExtractAndExpand. Source: RFC 9180, section 4.1."""
    prk = _extract(_KEM_SUITE, b"", b"eae_prk", shared)
    return _expand(_KEM_SUITE, prk, b"shared_secret", kem_context, _SECRET_BYTES)


def _key_schedule(shared_secret: bytes, info: bytes) -> tuple[bytes, bytes]:
    """Key and first nonce. Source: RFC 9180, section 5.1."""
    context = _MODE_BASE + _extract(_SUITE, b"", b"psk_id_hash", b"") + _extract(_SUITE, b"", b"info_hash", info)
    secret = _extract(_SUITE, shared_secret, b"secret", b"")
    return (
        _expand(_SUITE, secret, b"key", context, _KEY_BYTES),
        _expand(_SUITE, secret, b"base_nonce", context, _NONCE_BYTES),
    )


def _extract(suite: bytes, salt: bytes, label: bytes, ikm: bytes) -> bytes:
    """LabeledExtract: HKDF-Extract is HMAC under the salt. Source: RFC 5869, section 2.2."""
    return hmac.digest(salt, _VERSION + suite + label + ikm, "sha256")


def _expand(suite: bytes, prk: bytes, label: bytes, info: bytes, length: int) -> bytes:
    labeled = length.to_bytes(2, "big") + _VERSION + suite + label + info
    return HKDFExpand(SHA256(), length, labeled).derive(prk)
