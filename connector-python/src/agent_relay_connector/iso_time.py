"""Points of time in files. Source: ISO 8601."""

import re
from datetime import datetime

_TIME = re.compile(
    r"(\d{4}-\d{2}-\d{2}T\d{2}:\d{2})(:\d{2})?(?:\.(\d+))?(?:Z|([+-]\d{2}:\d{2}))",
    re.ASCII,
)


def epoch_ms_of(value: object) -> float | None:
    """Epoch milliseconds of ISO 8601 with an offset; None for anything else."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    minutes, seconds, fraction, offset = found.groups()
    try:
        whole = datetime.fromisoformat(f"{minutes}{seconds or ':00'}{offset or '+00:00'}")
        return whole.timestamp() * 1000 + int(f"{fraction or ''}000"[:3])
    except (ValueError, OverflowError):
        return None
