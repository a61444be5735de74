"""What a relay says to people, so that anybody can show and log it as it is."""

import re

from .limits import MAX_SAID_CHARACTERS

# Control characters, marks of text direction and halves of a character: a terminal would act on those.
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]",
)


def said_text(value: object) -> str | None:
    """The beginning of it; None for what is no text."""
    if not isinstance(value, str):
        return None
    return _UNPRINTABLE.sub(_escaped, value[:MAX_SAID_CHARACTERS])[:MAX_SAID_CHARACTERS]


def _escaped(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
