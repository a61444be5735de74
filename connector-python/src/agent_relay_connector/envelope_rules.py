"""What the relay would refuse in an envelope, found before it is signed. What is not checked here, the relay refuses.

Source: docs/protocol.md#envelopes.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .agent_id import agent_id_problem
from .error_catalogue import RELAY_ERRORS
from .errors import FieldError, RelayError, with_fields
from .limits import MAX_TASK_ID_CHARACTERS, SESSION_TEXT_CHARACTERS, SESSION_TTL_MINUTES
from .strict_json import integer_of

_MESSAGE_TYPE = re.compile(r"message\.[a-z][a-z0-9_]{0,31}")
_TYPE_RULE = "must be message.send, or message. and 1–32 of a–z 0–9 _, a letter first"

# A field, and what is wrong with it, if anything is.
_Problem = tuple[str, "str | None"]


def check_envelope(content: Mapping[str, Any], sender: str) -> None:
    """content: `type`, `to`, `task_id`, `payload`. Raises `invalid_envelope` with the fields that are wrong."""
    problems = _problems(content, sender)
    errors = [FieldError(field, message) for field, message in problems if message is not None]
    if errors:
        raise invalid_envelope(*errors)


def invalid_envelope(*errors: FieldError) -> RelayError:
    message = with_fields(RELAY_ERRORS["invalid_envelope"].message, errors)
    return RelayError("invalid_envelope", message, errors=errors)


def _problems(content: Mapping[str, Any], sender: str) -> Iterator[_Problem]:
    kind, to = content["type"], content["to"]
    is_session = isinstance(kind, str) and kind.startswith("session.")
    is_message = isinstance(kind, str) and _MESSAGE_TYPE.fullmatch(kind) is not None
    to_self = "must be another agent than the one that sends it" if is_session and to == sender else None
    yield "to", agent_id_problem(to) or to_self
    yield "type", None if is_session or is_message else _TYPE_RULE
    if "task_id" in content:
        yield "task_id", _text_problem(content["task_id"], 1, MAX_TASK_ID_CHARACTERS)
    if is_session:
        yield from _session_problems(kind, content["payload"])


def _session_problems(kind: str, payload: Mapping[str, Any]) -> Iterator[_Problem]:
    for name, (least, most) in SESSION_TEXT_CHARACTERS.items():
        if name in payload or (name == "purpose" and kind == "session.request"):
            yield f"payload.{name}", _text_problem(payload.get(name), least, most)
    least, most = SESSION_TTL_MINUTES
    minutes = integer_of(payload.get("ttl_minutes", least))
    is_ttl = minutes is not None and least <= minutes <= most
    yield "payload.ttl_minutes", None if is_ttl else f"must be a whole number from {least} to {most}"


def _text_problem(text: object, least: int, most: int) -> str | None:
    is_text = isinstance(text, str) and least <= len(text) <= most
    return None if is_text else f"must be a text of {least} to {most} characters"
