"""What is kept of an envelope that somebody else wrote."""

import re

from .agent_id import is_agent_id
from .limits import MAX_TASK_ID_CHARACTERS
from .payload_rules import is_payload
from .strict_json import integer_of, members_of
from .types import Envelope

# Whatever the memory of a connector holds of it has a bounded length. Source: docs/protocol.md#envelopes.
_FORMS = {
    "id": re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}"),
    "type": re.compile(r"(?:agent|message|session)\.[a-z][a-z0-9_]{0,31}"),
    "key_id": re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}"),
}
_TEXTS = ("from", "sig")
_OPTIONAL_TEXTS = ("to", "task_id")


def read_envelope(value: object) -> Envelope | None:
    """The signed members and no other; None when one is missing or has another form.

    The rules of payloads bound every recursion over an envelope, of which the canonical text is the first.
    """
    members = members_of(value)
    texts = [*_FORMS, *_TEXTS, *(name for name in _OPTIONAL_TEXTS if name in members)]
    ts = integer_of(members.get("ts"))
    if not all(isinstance(members.get(name), str) for name in texts):
        return None
    if not all(form.fullmatch(members[name]) for name, form in _FORMS.items()) or not is_agent_id(members["from"]):
        return None
    if "task_id" in members and not _is_task(members["task_id"]):
        return None
    if ts is None or not is_payload(members.get("payload")):
        return None
    kept = {name: members[name] for name in (*texts, "payload")}
    return {**kept, "ts": ts}  # type: ignore[return-value, misc]


def _is_task(text: str) -> bool:
    """A lone surrogate is no character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return 1 <= len(text) <= MAX_TASK_ID_CHARACTERS
