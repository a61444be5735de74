"""Frames of the relay, parsed so that no input can break the connector. Source: docs/protocol.md#frames."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Union, cast, get_args

from .error_catalogue import Retry, known_retry
from .errors import FieldError
from .limits import (
    HEARTBEAT_INTERVAL_S,
    MAX_ASKED_WAIT_S,
    MAX_CLOCK_SKEW_MS,
    MAX_FIELD_ERRORS,
    MAX_HEARTBEAT_INTERVAL_S,
    MAX_IN_FLIGHT,
    MAX_TIME_MS,
    MIN_HEARTBEAT_INTERVAL_S,
    RETRY_AFTER_S,
)
from .said_text import said_text
from .session_id import session_id_of
from .strict_json import integer_of, members_of, number_of, parse_json, text_of
from .types import Notice, SessionStatus, TargetDelivery


@dataclass(frozen=True)
class HelloFrame:
    # None where it is no id.
    connection_id: str | None
    # Epoch milliseconds.
    server_time: int | None
    heartbeat_interval_s: float
    max_clock_skew_ms: float
    # Envelopes without an answer that the connector may have.
    max_in_flight: int
    # Of the connector that the relay hands out.
    connector_version: str | None


@dataclass(frozen=True)
class AckFrame:
    envelope_id: str
    duplicate: bool
    delivery: TargetDelivery
    session_id: str
    session_status: SessionStatus


@dataclass(frozen=True)
class ErrorFrame:
    code: str
    message: str | None
    hint: str | None
    retry: Retry | None
    errors: tuple[FieldError, ...]
    envelope_id: str | None
    retry_after_s: float
    server_time: int | None


@dataclass(frozen=True)
class DeliverFrame:
    envelope: Any
    session_id: str | None


Frame = Union[HelloFrame, AckFrame, ErrorFrame, DeliverFrame, Notice]

_CONNECTION_ID = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_NOTICES = get_args(Notice.__annotations__["kind"])


def read_frame(text: object) -> Frame | None:
    """The frame; None for one that this version does not know. Never raises."""
    members = _parsed(text)
    kind = members.get("frame")
    if kind == "hello":
        return _hello(members)
    if kind == "ack":
        return _ack(members)
    if kind == "error":
        return _error(members)
    if kind == "deliver":
        return DeliverFrame(members.get("envelope"), session_id_of(members.get("session_id")))
    if kind == "notice" and members.get("notice") in _NOTICES:
        return _notice(members)
    return None


def _hello(members: Mapping[str, Any]) -> HelloFrame:
    limits = members_of(members.get("limits"))
    interval_ms = positive(limits.get("heartbeat_interval_ms"))
    interval_s = HEARTBEAT_INTERVAL_S if interval_ms is None else interval_ms / 1000
    most = positive(limits.get("max_unacknowledged"))
    return HelloFrame(
        connection_id=_connection_id(members.get("connection_id")),
        server_time=_time(members.get("server_time")),
        heartbeat_interval_s=min(max(interval_s, MIN_HEARTBEAT_INTERVAL_S), MAX_HEARTBEAT_INTERVAL_S),
        max_clock_skew_ms=positive(limits.get("max_clock_skew_ms")) or MAX_CLOCK_SKEW_MS,
        max_in_flight=MAX_IN_FLIGHT if most is None else max(1, math.floor(min(most, MAX_IN_FLIGHT))),
        connector_version=text_of(members.get("connector_version")),
    )


def _connection_id(value: object) -> str | None:
    """It is signed as it came: what could not be signed would end the connector."""
    return value if isinstance(value, str) and _CONNECTION_ID.fullmatch(value) else None


def _ack(members: Mapping[str, Any]) -> AckFrame:
    target = members_of(members.get("target_delivery"))
    status = target.get("status")
    return AckFrame(
        envelope_id=text_of(members.get("envelope_id")) or "",
        duplicate=members.get("duplicate") is True,
        delivery=TargetDelivery(
            status=status if status in ("online", "stale") else "not_seen",
            can_deliver_realtime=target.get("can_deliver_realtime") is True,
        ),
        session_id=session_id_of(members.get("session_id")) or "",
        session_status=cast(SessionStatus, said_text(members.get("session_status")) or ""),
    )


def _error(members: Mapping[str, Any]) -> ErrorFrame:
    return ErrorFrame(
        code=text_of(members.get("code")) or "",
        message=said_text(members.get("message")),
        hint=said_text(members.get("hint")),
        retry=known_retry(members.get("retry")),
        errors=field_errors_in(members.get("errors")),
        envelope_id=text_of(members.get("envelope_id")),
        retry_after_s=asked_wait_s(members.get("retry_after_ms")) or RETRY_AFTER_S,
        server_time=_time(members.get("server_time")),
    )


def field_errors_in(value: object) -> tuple[FieldError, ...]:
    """The member `errors` of a refusal; empty for what is none."""
    if not isinstance(value, list):
        return ()
    said = [members_of(error) for error in value[:MAX_FIELD_ERRORS]]
    read = [(said_text(members.get("field")), said_text(members.get("message"))) for members in said]
    return tuple(FieldError(field, message) for field, message in read if field is not None and message is not None)


def _notice(members: Mapping[str, Any]) -> Notice:
    reason = said_text(members.get("reason"))
    return Notice(members["notice"], members if reason is None else {**members, "reason": reason})


def _parsed(text: object) -> Mapping[str, Any]:
    try:
        return members_of(parse_json(text)) if isinstance(text, str) else {}
    except ValueError:
        return {}


def _time(value: object) -> int | None:
    """Epoch milliseconds; None for what is no time."""
    ms = integer_of(value)
    return ms if ms is not None and 0 <= ms <= MAX_TIME_MS else None


def _finite(value: object) -> float | None:
    number = number_of(value)
    return number if number is not None and math.isfinite(number) else None


def positive(value: object) -> float | None:
    """A finite number above 0; None for anything else."""
    number = _finite(value)
    return number if number is not None and number > 0 else None


def asked_wait_s(ms: object) -> float | None:
    """A wait that a relay asks for, in milliseconds, as long as it may be; None for what is none."""
    asked_ms = positive(ms)
    return None if asked_ms is None else min(asked_ms / 1000, MAX_ASKED_WAIT_S)
