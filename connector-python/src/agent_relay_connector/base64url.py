"""base64url without padding. Source: RFC 4648, section 5."""

import base64
import binascii
import re

_ALPHABET = re.compile(r"[A-Za-z0-9_-]*")


def encode_base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def decode_base64url(text: object) -> bytes | None:
    """The bytes; None for anything but the canonical encoding: with unused bits set, one value would have two texts."""
    if not isinstance(text, str) or not _ALPHABET.fullmatch(text):
        return None
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        return None
    return data if encode_base64url(data) == text else None
