"""Recognises what a relay may deliver again."""

from collections.abc import Callable

from .clock import Clock
from .delivered_ids import DeliveredIds
from .types import Envelope


class ReplayGuard:
    """Signatures stay valid for ever.

    What this connector delivered is remembered, or as old as what it forgot; what is old by the clock may have been
    delivered before it started.
    """

    def __init__(self, clock: Clock, max_age_s: float, is_pinned: Callable[[str], bool]) -> None:
        """max_age_s: 0 = any age.

        is_pinned: always the same for an agent: a verdict may differ from one delivery of an envelope to the next.
        """
        self._clock = clock
        self._max_age_ms = float("inf") if max_age_s == 0 else max_age_s * 1000
        self._is_pinned = is_pinned
        self._of_pinned = DeliveredIds()
        # Apart: there may be any number of them, and no room that they take is missing to agents that are pinned.
        self._of_others = DeliveredIds()

    @property
    def can_judge(self) -> bool:
        """False when nobody can tell here what is old; then no signature says that an envelope is meant now."""
        return self._max_age_ms == float("inf") or self._clock.is_trusted

    def is_stale(self, envelope: Envelope) -> bool:
        """Older than allowed, or as far in the future; or so old that it may have been delivered and forgotten."""
        is_recent = abs(self._clock.bounded_now() - envelope["ts"]) <= self._max_age_ms
        return not is_recent or self._delivered(envelope).may_have_had(envelope)

    def is_repeat(self, envelope: Envelope) -> bool:
        """True for a second delivery of an id of the same sender."""
        return self._delivered(envelope).ts_of(envelope) is not None

    def is_reused(self, envelope: Envelope) -> bool:
        """True for a repeat that is another envelope: its sender signed it at another time, and used an id again."""
        return self._delivered(envelope).ts_of(envelope) not in (None, envelope["ts"])

    def remember(self, envelope: Envelope) -> None:
        """Only what was delivered: a forged envelope must not block the true one whose id it copied."""
        self._delivered(envelope).add(envelope)

    def _delivered(self, envelope: Envelope) -> DeliveredIds:
        return self._of_pinned if self._is_pinned(envelope["from"]) else self._of_others
