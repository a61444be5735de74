"""The rules of payloads. What was sealed, or lay in a file, was never seen by a relay, and a relay may be none.

Source: docs/protocol.md#envelopes.
"""

import math
from typing import Any

from .limits import MAX_PAYLOAD_LEVELS, MAX_PAYLOAD_MEMBERS


def is_payload(value: object) -> bool:
    """True for a parsed value that the relay would take as a payload."""
    if not isinstance(value, dict):
        return False
    level: list[Any] = [value]
    members = 0
    for _ in range(MAX_PAYLOAD_LEVELS):
        if not all(map(_keeps_rules, level)):
            return False
        inner = [item for container in level if isinstance(container, (dict, list)) for item in _items(container)]
        members += len(inner)
        if members > MAX_PAYLOAD_MEMBERS:
            return False
        level = inner
    return not any(isinstance(item, (dict, list)) for item in level) and all(map(_keeps_rules, level))


def _items(container: dict[str, Any] | list[Any]) -> list[Any]:
    return list(container.values()) if isinstance(container, dict) else container


def _keeps_rules(value: Any) -> bool:
    if isinstance(value, str):
        return _is_well_formed(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, dict):
        return all(name != "__proto__" and _is_well_formed(name) for name in value)
    return True


def _is_well_formed(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
