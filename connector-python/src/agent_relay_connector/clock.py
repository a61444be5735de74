"""An estimate of the relay's clock."""

import time

from .limits import MAX_CLOCK_CORRECTION_MS, SAME_CLOCK_MS


def machine_ms() -> int:
    """This machine's clock, epoch milliseconds."""
    return round(time.time() * 1000)


class Clock:
    """The relay refuses an envelope whose `ts` is far from its clock, and this machine's may be wrong.

    Epoch milliseconds.
    """

    def __init__(self) -> None:
        # What the relay's clock is ahead of this machine's by: between these, by all that it told.
        self._least_ms, self._most_ms = float("-inf"), float("inf")
        self._offset_ms = 0.0

    def now(self) -> int:
        """The relay's clock, whatever it says: what this agent signs with."""
        return round(machine_ms() + self._offset_ms)

    def bounded_now(self) -> int:
        """What deliveries are judged by: this machine's clock, which the relay corrects by a bounded time only.

        A relay that lies about the time would else make any old envelope a recent one.
        """
        bounded = max(-MAX_CLOCK_CORRECTION_MS, min(self._offset_ms, MAX_CLOCK_CORRECTION_MS))
        return round(machine_ms() + bounded)

    @property
    def is_trusted(self) -> bool:
        """False when the relay's clock and this machine's are so far apart that either may be wrong, or lie."""
        return abs(self._offset_ms) <= MAX_CLOCK_CORRECTION_MS

    def measure(self, server_time_ms: float, elapsed_s: float = 0.0) -> None:
        """Corrects the estimate by a time that the relay told.

        It told it between the question and now: how long either way took, or a busy machine to read it, nobody knows, so
        that is no error of a clock. What fits to what was told before narrows it, so the quickest answer counts most; what
        does not says that a clock was set. elapsed_s: since the relay was asked.
        """
        least_ms = server_time_ms - machine_ms()
        most_ms = least_ms + elapsed_s * 1000
        if least_ms <= self._most_ms and most_ms >= self._least_ms:
            least_ms, most_ms = max(least_ms, self._least_ms), min(most_ms, self._most_ms)
        self._least_ms, self._most_ms = least_ms, most_ms
        is_same = least_ms <= SAME_CLOCK_MS and most_ms >= -SAME_CLOCK_MS
        self._offset_ms = 0.0 if is_same else (least_ms + most_ms) / 2
