"""Points of time in files. Source: RFC 3339, section 5.6; in upper case, and without leap seconds."""

import re
from datetime import datetime, timezone

_DATE = r"(\d{4})-(\d{2})-(\d{2})"
_CLOCK = r"([01]\d|2[0-3]):([0-5]\d)"
_TIME = re.compile(rf"{_DATE}T{_CLOCK}:([0-5]\d)(?:\.(\d+))?(?:Z|([+-]){_CLOCK})", re.ASCII)

# The calendar repeats after so many years, which are so many days.
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146_097
_DAY_MS = 86_400_000


def epoch_ms_of(value: object) -> float | None:
    """Epoch milliseconds of a date, a time with seconds, and its offset; None for anything else."""
    found = _TIME.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    *whole, fraction, sign, hours, minutes = found.groups()
    year, month, day, hour, minute, second = map(int, whole)
    cycles, year_of_cycle = divmod(year - 2000, _CYCLE_YEARS)
    try:
        # Python has no year 0.
        time = datetime(2000 + year_of_cycle, month, day, hour, minute, second, tzinfo=timezone.utc)
    except ValueError:
        return None
    ahead_ms = (int(hours or 0) * 60 + int(minutes or 0)) * (-60_000 if sign == "-" else 60_000)
    return time.timestamp() * 1000 + cycles * _CYCLE_DAYS * _DAY_MS + int(f"{fraction or ''}000"[:3]) - ahead_ms
