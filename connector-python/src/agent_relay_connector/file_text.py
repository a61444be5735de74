"""The text of a file that a person or their program wrote."""

import codecs

UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decode_text(data: bytes) -> str | None:
    """Without a byte order mark of UTF-8. None for UTF-16, which `>` of Windows PowerShell writes. Raises ValueError."""
    return None if data.startswith(UTF_16_MARKS) else data.decode("utf-8-sig")
