"""What a relay calls a session. Source: docs/protocol.md#sessions."""

import re

_SESSION_ID = re.compile(r"ses_[0-9a-hjkmnp-tv-z]{26}")


def session_id_of(value: object) -> str | None:
    """None for what is none: ids of sessions are remembered, and have a bounded length by their form alone."""
    return value if isinstance(value, str) and _SESSION_ID.fullmatch(value) else None
