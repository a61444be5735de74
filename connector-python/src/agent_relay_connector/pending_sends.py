"""Sends without an answer."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Union

from .errors import RelayError
from .frames import AckFrame
from .signer import SignedEnvelope
from .sorted_list import SortedList

# Canonical text up to the payload; or what makes it once there is a connection, and may have to wait for a key.
SendDraft = Union[str, Callable[[], Awaitable[str]]]


@dataclass(frozen=True)
class Acknowledged:
    """The ack of an envelope, and the envelope's text as it was signed."""

    ack: AckFrame
    text: str


@dataclass(eq=False)
class Hold:
    """While its time runs, nothing goes out under it; then one envelope at a time, until one is answered otherwise."""

    # What the relay said.
    refusal: RelayError
    # By the event loop's clock.
    ends_at: float
    # None once its time is over.
    timer: asyncio.TimerHandle | None


class Scope:
    """The sends that one refusal may hold: all of the agent, those of a kind, or those to a target."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.hold: Hold | None = None
        # How many of its sends are trials.
        self.trials = 0
        self.sends = SortedList[PendingSend](lambda send: (send.deadline, send.order))

    def end(self) -> None:
        """Its hold."""
        if self.hold is not None and self.hold.timer is not None:
            self.hold.timer.cancel()
        self.hold = None


# All of the agent, the kind of a send, and its target.
Scopes = tuple[Scope, Scope, Scope]


@dataclass(eq=False)
class PendingSend:
    id: str
    type: str
    to: str
    draft: SendDraft
    answer: "asyncio.Future[Acknowledged]" = field(repr=False)
    # By the event loop's clock: the end of the time that the call has.
    deadline: float
    scopes: Scopes = field(repr=False)
    # Epoch milliseconds: see `Signer.sign`.
    not_before: int = 0
    # Of the calls.
    order: int = 0
    # As it went out, and as it goes out again: an id is signed once. Whatever a relay answers, it may keep what it got,
    # and of two signatures with different times a recipient may have forgotten the one when the other comes.
    signed: SignedEnvelope | None = None
    # Its draft is being made.
    is_being_drafted: bool = False
    # Sent on the current connection, and not answered yet.
    is_in_flight: bool = False
    # In flight, and it went out under a hold.
    is_trial: bool = False
    # It went out before, and whether it was accepted then is not known.
    is_outcome_unknown: bool = False
    # Why it waits to go out again, where the relay said so.
    refusal: str | None = None

    @property
    def holds(self) -> list[Hold]:
        return [scope.hold for scope in self.scopes if scope.hold is not None]

    @property
    def may_be_accepted(self) -> bool:
        return self.is_in_flight or self.is_outcome_unknown

    def needs(self, key_id: str) -> bool:
        """It was signed with this key: if it goes out again, then as it is."""
        return self.signed is not None and self.signed.key_id == key_id

    @property
    def lapse(self) -> str:
        """Why it is given up once it cannot go out again as it is."""
        return "outcome_unknown" if self.is_outcome_unknown or self.refusal is None else self.refusal


class _Lane:
    """What goes to one target."""

    def __init__(self) -> None:
        # What is not in flight.
        self.waiting = SortedList[PendingSend](_order_of)
        # The first of that, unless its draft or something to its target keeps it back.
        self.head: PendingSend | None = None
        # The heads that it is among.
        self.heads = SortedList[PendingSend](_order_of)


class PendingSends:
    """In the order of their calls."""

    def __init__(self) -> None:
        self._sends: dict[str, PendingSend] = {}
        self._lanes: dict[str, _Lane] = {}
        # Those under the same holds together: by kind, and whether there is a hold of their target.
        self._heads: dict[tuple[str, bool], SortedList[PendingSend]] = {}
        self._in_flight: dict[PendingSend, None] = {}
        self._trials = 0
        self._added = 0

    def __len__(self) -> int:
        return len(self._sends)

    def all(self) -> list[PendingSend]:
        return list(self._sends.values())

    def get(self, envelope_id: str | None) -> PendingSend | None:
        return self._sends.get(envelope_id or "")

    def add(self, send: PendingSend) -> None:
        self._added += 1
        send.order = self._added
        self._sends[send.id] = send
        for scope in send.scopes:
            scope.sends.add(send)
        self._wait(send)

    def remove(self, send: PendingSend) -> None:
        self.requeue(send)
        if self._sends.pop(send.id, None) is None:
            return
        for scope in send.scopes:
            scope.sends.remove(send)
        self._wait_no_more(send)
        if not send.scopes[2].sends:
            del self._lanes[send.to]

    def first_waiting(self, most: int) -> PendingSend | None:
        """most: how many may be in flight.

        What is being drafted or held holds up what goes to the same agent after it, and nothing else: strangers may
        have no key for long. Of what a hold lets out again one is in flight at a time, and of all holds at most half of
        `most`: what is refused again and again leaves places for the rest.
        """
        if len(self._in_flight) >= most:
            return None
        may_try = self._trials < max(1, most // 2)
        first: PendingSend | None = None
        for heads in self._heads.values():
            head = heads.first
            if head is None or (first is not None and first.order < head.order):
                continue
            if all(_is_open(scope, may_try) for scope in head.scopes):
                first = head
        return first

    def holds_of(self, send: PendingSend) -> list[Hold]:
        """What keeps a send back, or what goes to its target before it."""
        lane = self._lanes.get(send.to)
        first = None if lane is None else lane.waiting.first
        return send.holds if first is None or first.order >= send.order else [*send.holds, *first.holds]

    def mark_in_flight(self, send: PendingSend, signed: SignedEnvelope) -> None:
        send.signed = signed
        send.is_in_flight = True
        self._in_flight[send] = None
        if send.holds:
            self._count_trial(send, 1)
        self._wait_no_more(send)

    def requeue(self, send: PendingSend) -> None:
        """It is not in flight any more; it keeps its place in the order."""
        if not send.is_in_flight:
            return
        send.is_in_flight = False
        del self._in_flight[send]
        if send.is_trial:
            self._count_trial(send, -1)
        self._wait(send)

    def requeue_all(self) -> None:
        """The connection on which they went out is gone, or was replaced: whether they were accepted is not known.

        All holds have ended.
        """
        for send in tuple(self._in_flight):
            send.is_outcome_unknown = True
            self.requeue(send)
        for target in self._lanes:
            self.look(target)

    def look(self, target: str) -> None:
        """To be called after every change of a hold of this target, and of a draft to it."""
        lane = self._lanes.get(target)
        if lane is None:
            return
        if lane.head is not None:
            lane.heads.remove(lane.head)
        first = lane.waiting.first
        lane.head = first if first is not None and _may_lead(first) else None
        if lane.head is not None:
            lane.heads = self._heads_like(lane.head)
            lane.heads.add(lane.head)

    def _wait(self, send: PendingSend) -> None:
        self._lanes.setdefault(send.to, _Lane()).waiting.add(send)
        self.look(send.to)

    def _wait_no_more(self, send: PendingSend) -> None:
        self._lanes[send.to].waiting.remove(send)
        self.look(send.to)

    def _count_trial(self, send: PendingSend, change: int) -> None:
        send.is_trial = change > 0
        self._trials += change
        for scope in send.scopes:
            scope.trials += change

    def _heads_like(self, send: PendingSend) -> SortedList[PendingSend]:
        _, kind, target = send.scopes
        return self._heads.setdefault((kind.name, target.hold is not None), SortedList(_order_of))


def _may_lead(send: PendingSend) -> bool:
    """Nothing overtakes what a hold let out again."""
    target = send.scopes[2]
    is_running = target.hold is not None and target.hold.timer is not None
    return not (send.is_being_drafted or target.trials > 0 or is_running)


def _is_open(scope: Scope, may_try: bool) -> bool:
    return scope.hold is None or (may_try and scope.hold.timer is None and scope.trials == 0)


def _order_of(send: PendingSend) -> tuple[float, ...]:
    return (send.order,)
