"""Recognises what a relay may deliver again."""

from .clock import Clock, machine_ms
from .limits import MAX_CLOCK_CORRECTION_MS, MAX_SEEN
from .types import Envelope, Verified


class ReplayGuard:
    """Signatures stay valid for ever.

    What is old is refused by its `ts`; what is recent is remembered until it is old.
    """

    def __init__(self, clock: Clock, max_age_s: float) -> None:
        """max_age_s: 0 = any age."""
        self._clock = clock
        self._max_age_ms = float("inf") if max_age_s == 0 else max_age_s * 1000
        # By this machine's clock alone, as if the relay set it back as far as it can: else it could make old what is
        # forgotten.
        life_ms = self._max_age_ms + MAX_CLOCK_CORRECTION_MS
        self._verified = _Memory(life_ms)
        # Apart, so that what a relay makes up cannot push out what others signed.
        self._others = _Memory(life_ms)

    @property
    def can_judge(self) -> bool:
        """False when nobody can tell here what is old; then no signature says that an envelope is meant now."""
        return self._max_age_ms == float("inf") or self._clock.is_trusted

    def is_stale(self, envelope: Envelope) -> bool:
        """Older than allowed, or as far in the future."""
        return abs(self._clock.bounded_now() - envelope["ts"]) > self._max_age_ms

    def is_repeat(self, envelope: Envelope) -> bool:
        """True for a second delivery of an id of the same sender."""
        return self._ts_of_delivered(envelope) is not None

    def is_reused(self, envelope: Envelope) -> bool:
        """True for a repeat that is another envelope: its sender signed it at another time, and used an id again."""
        return self._ts_of_delivered(envelope) not in (None, envelope["ts"])

    def remember(self, envelope: Envelope, verified: Verified) -> None:
        """Only what was delivered: a forged envelope must not block the true one whose id it copied."""
        memory = self._verified if verified == "agent" else self._others
        memory.add(_name_of(envelope), envelope["ts"])

    def _ts_of_delivered(self, envelope: Envelope) -> int | None:
        name = _name_of(envelope)
        verified = self._verified.get(name)
        return self._others.get(name) if verified is None else verified


def _name_of(envelope: Envelope) -> str:
    """No agent id contains a space."""
    return f"{envelope['from']} {envelope['id']}"


class _Memory:
    """Names with their times, each for as long after it, at most MAX_SEEN."""

    def __init__(self, life_ms: float) -> None:
        self._life_ms = life_ms
        self._times: dict[str, int] = {}

    def get(self, name: str) -> int | None:
        return self._times.get(name)

    def add(self, name: str, time_ms: int) -> None:
        self._times[name] = time_ms
        while len(self._times) > MAX_SEEN or next(iter(self._times.values())) + self._life_ms < machine_ms():
            del self._times[next(iter(self._times))]
            if not self._times:
                return
