"""Keys of the relay's gateways. Source: docs/protocol.md#gateway-signing."""

import hashlib

from .base64url import encode_base64url
from .errors import RelayError
from .keys import VerifyKey, ed25519_verify_key
from .strict_json import members_of, text_of

# Of a `key_id` that only the relay's gateways use.
GATEWAY_KEY_PREFIX = "gateway-"
_DIGEST_CHARACTERS = 22


def read_gateway_keys(listed: object) -> dict[str, VerifyKey]:
    """The keys of a signing manifest's `gateway_keys`, by id; what cannot be used is left out."""
    keys = {}
    for item in listed if isinstance(listed, list) else []:
        members = members_of(item)
        key_id, public_key = members.get("key_id"), text_of(members.get("public_key")) or ""
        # Whoever pinned the id has pinned the key: no relay puts another in its place.
        if members.get("alg") != "ed25519" or key_id != _id_of(public_key):
            continue
        try:
            keys[key_id] = ed25519_verify_key(public_key)
        except RelayError:
            continue
    return keys


def _id_of(public_key: str) -> str:
    digest = hashlib.sha256(public_key.encode(errors="replace")).digest()
    return GATEWAY_KEY_PREFIX + encode_base64url(digest)[:_DIGEST_CHARACTERS]
