"""So many in each minute."""

import time

_MINUTE_S = 60.0


class Allowance:
    def __init__(self, per_minute: int) -> None:
        self._per_minute = per_minute
        # By time.monotonic().
        self._since = float("-inf")
        self._taken = 0

    def take(self) -> bool:
        """False when there is none left."""
        now = time.monotonic()
        if now - self._since >= _MINUTE_S:
            self._since, self._taken = now, 0
        self._taken += 1
        return self._taken <= self._per_minute
