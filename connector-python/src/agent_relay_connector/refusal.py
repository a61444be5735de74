"""What the relay says of something that it refused, as an error for a caller of this package."""

from collections.abc import Mapping
from typing import Any

from .error_catalogue import Retry, known_code, known_retry
from .errors import FieldError, RelayError, with_fields
from .frames import ErrorFrame, asked_wait_s, field_errors_in
from .said_text import said_text
from .strict_json import text_of

# Of these the relay's hint is for programs that make envelopes themselves, and names members of the wire. Whoever calls
# this package reads the catalogue's.
_OWN_HINTS = frozenset(
    {
        "malformed_json",
        "invalid_envelope",
        "clock_skew",
        "unknown_key",
        "bad_signature",
        "key_not_allowed",
        "wrong_connection",
        "not_registered",
        "not_your_session",
        "register_timeout",
    }
)
# The same of its message.
_OWN_MESSAGES = frozenset({"unknown_key"})


def refusal_of(
    said: str, message: str | None, hint: str | None, *, retry: Retry | None, errors: tuple[FieldError, ...]
) -> RelayError:
    """said: the relay's code."""
    code = known_code(said)
    sentence = None if code in _OWN_MESSAGES or message is None else with_fields(message, errors)
    return RelayError(code, sentence, None if code in _OWN_HINTS else hint, retry=retry, errors=errors)


def refused_by(frame: ErrorFrame) -> RelayError:
    error = refusal_of(frame.code, frame.message, frame.hint, retry=frame.retry, errors=frame.errors)
    error.retry_after = frame.retry_after_s
    return error


def problem_in(members: Mapping[str, Any]) -> RelayError:
    """The refusal in an answer over HTTP. Source: docs/protocol.md#errors."""
    error = refusal_of(
        text_of(members.get("code")) or "",
        said_text(members.get("detail")) or said_text(members.get("title")),
        said_text(members.get("hint")),
        retry=known_retry(members.get("retry")),
        errors=field_errors_in(members.get("errors")),
    )
    error.retry_after = asked_wait_s(members.get("retry_after_ms"))
    return error
