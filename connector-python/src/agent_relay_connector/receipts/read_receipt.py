"""Reads receipts that somebody handed over."""

import re
from collections.abc import Mapping
from typing import Any

from ..agent_id import is_agent_id
from ..credentials.contract import is_credential_key
from ..file_text import decode_text
from ..limits import SESSION_TTL_DEFAULT_MINUTES, SESSION_TTL_MINUTES
from ..read_envelope import read_envelope
from ..strict_json import integer_of, members_of, parse_unique_json
from ..types import Envelope
from .contract import Receipt

_MEMBERS = {"version", "request", "decision", "credentials"}
_ENVELOPE_MEMBERS = {"id", "type", "from", "to", "task_id", "payload", "ts", "key_id", "sig"}
_ED25519_SIG = re.compile(r"[A-Za-z0-9_-]{86}")
# Two agents, each with at most two credentials at a time.
_MAX_CREDENTIALS = 4


def read_receipt(given: str | bytes) -> Receipt | None:
    """The receipt of a JSON text or of its bytes in UTF-8, with a byte order mark or without.

    None when it is malformed: a member too many, twice, missing, or of another form.
    """
    try:
        value = members_of(parse_unique_json(_text_of(given)))
    except ValueError:
        return None
    request, decision = _envelope(value.get("request")), _envelope(value.get("decision"))
    credentials = value.get("credentials")
    if integer_of(value.get("version")) != 1 or not value.keys() <= _MEMBERS or not _are_tokens(credentials):
        return None
    if request is None or decision is None or not _is_request(request) or not _is_decision(decision):
        return None
    return {"version": 1, "request": request, "decision": decision, "credentials": value["credentials"]}


def ttl_ms_of(request: Envelope) -> int | None:
    """Milliseconds in which a request could be decided; None when it says none that is allowed."""
    minutes = integer_of(request["payload"].get("ttl_minutes", SESSION_TTL_DEFAULT_MINUTES))
    least, most = SESSION_TTL_MINUTES
    return minutes * 60_000 if minutes is not None and least <= minutes <= most else None


def _text_of(given: object) -> str:
    """Empty for what is no text in UTF-8. Raises ValueError."""
    if isinstance(given, str):
        return given.removeprefix("\ufeff")
    return (decode_text(given) or "") if isinstance(given, (bytes, bytearray)) else ""


def _is_request(envelope: Envelope) -> bool:
    return envelope["type"] == "session.request" and ttl_ms_of(envelope) is not None


def _is_decision(envelope: Envelope) -> bool:
    is_decision = envelope["type"] in ("session.approve", "session.reject")
    texts = (envelope["payload"].get(name) for name in ("session_id", "request_sha256"))
    return is_decision and all(isinstance(text, str) for text in texts)


def _envelope(value: object) -> Envelope | None:
    """Of agents whose keys have credentials. Source: docs/protocol.md#envelopes."""
    members: Mapping[str, Any] = members_of(value)
    envelope = read_envelope(members)
    if envelope is None or not members.keys() <= _ENVELOPE_MEMBERS:
        return None
    if not is_agent_id(envelope.get("to")) or not is_credential_key(envelope["key_id"]):
        return None
    return envelope if _ED25519_SIG.fullmatch(envelope["sig"]) else None


def _are_tokens(value: object) -> bool:
    is_list = isinstance(value, list) and len(value) <= _MAX_CREDENTIALS
    return is_list and all(isinstance(token, str) for token in value)  # type: ignore[attr-defined]
