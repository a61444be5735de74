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
        self._verified = _Memory()
        # Apart, so that what a relay makes up cannot push out what others signed.
        self._others = _Memory()

    @property
    def can_judge(self) -> bool:
        """False when nobody can tell here what is old; then no signature says that an envelope is meant now."""
        return self._max_age_ms == float("inf") or self._clock.is_trusted

    def is_stale(self, envelope: Envelope) -> bool:
        """Older than allowed, or as far in the future."""
        return abs(self._clock.bounded_now() - envelope["ts"]) > self._max_age_ms

    def is_repeat(self, envelope: Envelope) -> bool:
        """True for a second delivery of an id of the same sender."""
        name = _name_of(envelope)
        return name in self._verified or name in self._others

    def remember(self, envelope: Envelope, verified: Verified) -> None:
        """Only what was delivered: a forged envelope must not block the true one whose id it copied."""
        memory = self._verified if verified == "agent" else self._others
        # By this machine's clock alone, as if the relay set it back as far as it can: else it could make old what is
        # forgotten.
        memory.add(_name_of(envelope), envelope["ts"] + self._max_age_ms + MAX_CLOCK_CORRECTION_MS)


def _name_of(envelope: Envelope) -> str:
    """No agent id contains a space."""
    return f"{envelope['from']} {envelope['id']}"


class _Memory:
    """Names, each until its time, at most MAX_SEEN."""

    def __init__(self) -> None:
        self._until: dict[str, float] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._until

    def add(self, name: str, until_ms: float) -> None:
        self._until[name] = until_ms
        while len(self._until) > MAX_SEEN or next(iter(self._until.values())) < machine_ms():
            del self._until[next(iter(self._until))]
            if not self._until:
                return
