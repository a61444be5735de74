"""The canonical form of JSON. Source: RFC 8785."""

import json
from decimal import Decimal
from typing import Any

from .strict_json import MAX_SAFE_INTEGER


def canonicalize(value: Any) -> str:
    """No white space, members sorted by UTF-16 code units, numbers as ECMAScript writes them.

    Raises ValueError for what RFC 8785 cannot express: a number that is not a double, a lone surrogate, a cycle, a name
    that is no text, a value that is none of JSON.
    """
    try:
        text = _text(value)
        text.encode()
    except RecursionError:
        raise ValueError("nested too deeply, or within itself") from None
    return text


def _text(value: Any) -> str:
    if isinstance(value, dict):
        if not all(isinstance(name, str) for name in value):
            raise ValueError("the name of a member is a text")
        return "{" + ",".join(f"{_text(name)}:{_text(value[name])}" for name in sorted(value, key=_utf_16)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_text, value)) + "]"
    if value is None or isinstance(value, (bool, str)):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, (int, float)):
        return _number(value)
    raise ValueError(f"{type(value).__name__} is not a type of JSON")


def _utf_16(name: str) -> bytes:
    return name.encode("utf-16-be")


def _number(value: int | float) -> str:
    """Source: RFC 8785, section 3.2.2.3."""
    if isinstance(value, int) and abs(value) > MAX_SAFE_INTEGER:
        raise ValueError("readers of JSON would round an integer of 2**53 or more: send it as a text")
    if value == 0:
        return "0"
    shortest = Decimal(json.dumps(float(value), allow_nan=False)).normalize()
    return f"{shortest:f}" if 1e-6 <= abs(value) < 1e21 else f"{shortest:e}"
