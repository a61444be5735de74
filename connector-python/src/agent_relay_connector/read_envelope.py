"""What is kept of an envelope that somebody else wrote."""

from .strict_json import integer_of, members_of
from .types import Envelope

_TEXTS = ("id", "type", "from", "key_id", "sig")
_OPTIONAL_TEXTS = ("to", "task_id")


def read_envelope(value: object) -> Envelope | None:
    """The signed members and no other; None when one is missing or has another type."""
    members = members_of(value)
    texts = [*_TEXTS, *(name for name in _OPTIONAL_TEXTS if name in members)]
    ts = integer_of(members.get("ts"))
    if not all(isinstance(members.get(name), str) for name in texts):
        return None
    if ts is None or not isinstance(members.get("payload"), dict):
        return None
    kept = {name: members[name] for name in (*texts, "payload")}
    return {**kept, "ts": ts}  # type: ignore[return-value, misc]
