"""The text of a file that a person or their program wrote."""

import codecs

_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode_text(data: bytes) -> str | None:
    """Without a byte order mark of UTF-8. None for UTF-16, and for what is no UTF-8."""
    try:
        return None if is_utf_16(data) else data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None


def is_utf_16(data: bytes | bytearray) -> bool:
    """A byte order mark, as `>` of Windows PowerShell writes, or an ASCII character first, as in JSON."""
    return data.startswith(_UTF_16_MARKS) or (len(data) > 1 and data[:2].count(0) == 1)
