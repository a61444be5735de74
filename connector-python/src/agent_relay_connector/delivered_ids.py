"""The ids that were delivered, by sender."""

from .limits import MAX_DELIVERED_IDS, MAX_SENDERS
from .types import Envelope

_NEVER = float("-inf")
BUCKETS = 65_536


class DeliveredIds:
    """An id that was once added has its `ts_of`, or is `may_have_had`, for ever after, whatever else is added.

    What is forgotten for want of room raises the time up to which nothing of its sender counts as new. No clock has a
    say in it. It rests on one thing: an id is signed once, with one `ts`. Source: docs/security.md#at-the-recipient.
    """

    def __init__(self) -> None:
        # Who was heard last stands last.
        self._senders: dict[str, _SenderIds] = {}
        self._size = 0
        # Of senders that were forgotten, a time not before that of the newest, in room that does not grow: they share
        # buckets, by the hash of Python, which begins with a secret, so that nobody can choose whose bucket it shares.
        self._forgotten: dict[int, float] = {}

    def ts_of(self, envelope: Envelope) -> int | None:
        """The `ts` of the one with its id; None where there is none."""
        ids = self._senders.get(envelope["from"])
        return None if ids is None else ids.times.get(envelope["id"])

    def may_have_had(self, envelope: Envelope) -> bool:
        """True for one as old as what was forgotten."""
        ids = self._senders.get(envelope["from"])
        return envelope["ts"] <= (self._forgotten_to(envelope["from"]) if ids is None else ids.forgotten_to)

    def add(self, envelope: Envelope) -> None:
        """Adds one that it does not have."""
        sender = envelope["from"]
        ids = self._senders.pop(sender, None) or _SenderIds(self._forgotten_to(sender))
        self._senders[sender] = ids
        ids.add(envelope["id"], envelope["ts"])
        self._size += 1
        # Who sends most makes room: no sender can have another's ids forgotten.
        if self._size > MAX_DELIVERED_IDS:
            fullest = max(self._senders.values(), key=lambda each: len(each.times))
            self._size -= fullest.forget_older_half()
        if len(self._senders) > MAX_SENDERS:
            self._forget_longest_unheard()

    def _forget_longest_unheard(self) -> None:
        sender = next(iter(self._senders))
        ids = self._senders.pop(sender)
        self._forgotten[hash(sender) % BUCKETS] = max(self._forgotten_to(sender), ids.newest)
        self._size -= len(ids.times)

    def _forgotten_to(self, sender: str) -> float:
        return self._forgotten.get(hash(sender) % BUCKETS, _NEVER)


class _SenderIds:
    def __init__(self, forgotten_to: float) -> None:
        # `ts` by id.
        self.times: dict[str, int] = {}
        # The newest `ts` of those that were forgotten; at first what was forgotten of it before, if it was.
        self.forgotten_to = forgotten_to
        # The newest `ts` of all.
        self.newest = _NEVER

    def add(self, envelope_id: str, ts: int) -> None:
        self.times[envelope_id] = ts
        self.newest = max(self.newest, ts)

    def forget_older_half(self) -> int:
        """Returns how many are forgotten, one at least."""
        before = len(self.times)
        self.forgotten_to = sorted(self.times.values())[before // 2]
        self.times = {name: ts for name, ts in self.times.items() if ts > self.forgotten_to}
        return before - len(self.times)
