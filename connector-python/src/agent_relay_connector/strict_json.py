"""JSON as every reader of the protocol has it: RFC 8259, numbers are doubles, of a double member the last counts."""

import json
from collections.abc import Mapping
from typing import Any

MAX_SAFE_INTEGER = 2**53 - 1


def parse_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError."""
    return _parse(text, dict)


def parse_unique_json(text: str) -> Any:
    """The same, but a member that stands twice in its object is refused. Raises ValueError."""
    return _parse(text, _unique)


def members_of(value: object) -> Mapping[str, Any]:
    """The members of a JSON object; empty for any other value."""
    return value if isinstance(value, dict) else {}


def text_of(value: object) -> str | None:
    return value if isinstance(value, str) else None


def number_of(value: object) -> float | None:
    """A number, which JSON's true and false are not."""
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def integer_of(value: object) -> int | None:
    """An integer that a double holds exactly, however it is written: 1e3 is 1000."""
    number = number_of(value)
    if number is None or not float(number).is_integer() or abs(number) > MAX_SAFE_INTEGER:
        return None
    return int(number)


def _parse(text: str, hook: Any) -> Any:
    try:
        return json.loads(
            text,
            object_pairs_hook=hook,
            parse_int=_integer,
            parse_constant=_refuse,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("a member stands twice")
    return members


def _integer(text: str) -> int | float:
    """A long integer is a double, as it is for every other reader."""
    if len(text) > len(str(MAX_SAFE_INTEGER)) + 1:
        return float(text)
    value = int(text)
    return value if abs(value) <= MAX_SAFE_INTEGER else float(text)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
