"""What a relay says to people, so that anybody can show and log it as it is."""

import re

from .limits import MAX_SAID_CHARACTERS

# Control characters, what nobody sees (Unicode's Default_Ignorable_Code_Point: marks of text direction, zero width,
# tags) and halves of a character: a terminal would act on some, and the others could say what only a program reads.
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
    r"\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    r"\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]",
)


def said_text(value: object) -> str | None:
    """The beginning of it; None for what is no text."""
    if not isinstance(value, str):
        return None
    return _UNPRINTABLE.sub(_escaped, value[:MAX_SAID_CHARACTERS])[:MAX_SAID_CHARACTERS]


def _escaped(found: re.Match[str]) -> str:
    """As JSON does: each half of a character beyond the first plane by itself."""
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at:at + 4]}" for at in range(0, len(units), 4))
