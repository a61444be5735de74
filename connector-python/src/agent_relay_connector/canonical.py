"""The canonical text: what is signed. Source: docs/protocol.md#signatures, RFC 8785."""

from collections.abc import Mapping
from typing import Any

from .base64url import decode_base64url
from .jcs import canonicalize
from .keys import VerifyKey
from .types import Envelope

_DRAFT_ORDER = ("id", "type", "from", "to", "task_id", "payload")


def draft_text(members: Mapping[str, Any]) -> str:
    """The canonical text up to the payload: time and key come last, and are known only when it goes out.

    Later changes of the payload have no effect. Raises ValueError for what RFC 8785 cannot express.
    """
    return "{" + ",".join(f'"{name}":{canonicalize(members[name])}' for name in _DRAFT_ORDER if name in members)


def canonical_text(draft: str, ts: int, key_id: str) -> str:
    """ts: epoch milliseconds."""
    return f'{draft},"ts":{canonicalize(ts)},"key_id":{canonicalize(key_id)}}}'


def signed_text(canonical: str, sig: str) -> str:
    """What goes over the wire: the canonical text with `sig` as its last member."""
    return f'{canonical[:-1]},"sig":"{sig}"}}'


def signed_part(envelope: Envelope) -> str:
    """The text that an envelope's `sig` signs. Raises ValueError."""
    return canonical_text(draft_text(envelope), envelope["ts"], envelope["key_id"])


def is_signed_by(key: VerifyKey, envelope: Envelope) -> bool:
    """True when the envelope's `sig` is the key's. Never raises."""
    sig = decode_base64url(envelope["sig"])
    if sig is None:
        return False
    try:
        return key.verifies(sig, signed_part(envelope).encode())
    except ValueError:
        return False
