"""The id of a session is made of the request that opens it. Source: docs/protocol.md#sessions."""

import re

from ..base64url import decode_base64url

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
# `ses_`, two digits that are the relay's own, and those of the request.
_SESSION_ID = re.compile(r"ses_[0-9a-hjkmnp-tv-z]{2}(.*)", re.DOTALL)
_DIGEST_BYTES = 15
_BITS_A_DIGIT = 5


def is_session_of(session_id: object, digest: str) -> bool:
    """True for the id of the session that a request opens. digest: of the request, as decisions carry it."""
    found = _SESSION_ID.fullmatch(session_id) if isinstance(session_id, str) else None
    return found is not None and found[1] == _id_of(digest)


def _id_of(digest: str) -> str:
    """120 bits of the digest in Crockford base32."""
    number = int.from_bytes((decode_base64url(digest) or b"")[:_DIGEST_BYTES], "big")
    places = range(_DIGEST_BYTES * 8 - _BITS_A_DIGIT, -1, -_BITS_A_DIGIT)
    return "".join(_DIGITS[number >> place & 31] for place in places)
