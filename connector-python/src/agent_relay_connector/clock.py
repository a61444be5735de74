"""An estimate of the relay's clock."""

import time

from .limits import MAX_CLOCK_CORRECTION_MS


def machine_ms() -> int:
    """This machine's clock, epoch milliseconds."""
    return round(time.time() * 1000)


class Clock:
    """The relay refuses an envelope whose `ts` is far from its clock, and this machine's may be wrong.

    Epoch milliseconds.
    """

    def __init__(self) -> None:
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

    def measure(self, server_time_ms: float) -> None:
        """Corrects the estimate by a time that the relay has just told."""
        self._offset_ms = server_time_ms - machine_ms()
