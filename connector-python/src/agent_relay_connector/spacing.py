"""Distances in time that no clock of a relay has a part in."""

import time

from .limits import BACKOFF_FIRST_S


class Spacing:
    """What happens again and again happens ever less often: after each time the distance to the next doubles."""

    def __init__(self, cap_s: float) -> None:
        """cap_s: the longest distance. After twice as long without a call, the distances are short again."""
        self._cap_s = cap_s
        self._times = 0
        self._last_at = float("-inf")

    def happens(self) -> None:
        now = time.monotonic()
        if now - self._last_at >= 2 * self._cap_s:
            self._times = 0
        self._times += 1
        self._last_at = now

    def left_s(self, at_most_s: float = float("inf")) -> float:
        """Seconds until it may happen again. at_most_s: the longest distance for now."""
        distance_s = min(self._cap_s, at_most_s, BACKOFF_FIRST_S * 2.0 ** min(self._times, 32))
        return max(0.0, self._last_at + distance_s - time.monotonic())
