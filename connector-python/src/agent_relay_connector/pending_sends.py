"""Sends without an answer."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Union

from .frames import AckFrame
from .holds import Hold, Holds, last_of
from .signer import SignedEnvelope

# Canonical text up to the payload; or what makes it once there is a connection, and may have to wait for a key.
SendDraft = Union[str, Callable[[], Awaitable[str]]]


@dataclass(frozen=True)
class Acknowledged:
    """The ack of an envelope, and the envelope's text as it was signed."""

    ack: AckFrame
    text: str


@dataclass(eq=False)
class PendingSend:
    id: str
    type: str
    to: str
    draft: SendDraft
    answer: "asyncio.Future[Acknowledged]" = field(repr=False)
    # By the event loop's clock: the end of the time that the call has.
    deadline: float
    # Epoch milliseconds: see `Signer.sign`.
    not_before: int = 0
    # As it went out, and as it goes out again: an id is signed once. Whatever a relay answers, it may keep what it got,
    # and of two signatures with different times a recipient may have forgotten the one when the other comes.
    signed: SignedEnvelope | None = None
    # Its draft is being made.
    is_being_drafted: bool = False
    # Sent on the current connection, and not answered yet.
    is_in_flight: bool = False
    # It went out before, and whether it was accepted then is not known.
    is_outcome_unknown: bool = False
    # Why it waits to go out again, where the relay said so.
    refusal: str | None = None

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


class PendingSends:
    """In the order of their calls."""

    def __init__(self) -> None:
        self._sends: dict[str, PendingSend] = {}
        # By target, each in order: of a dictionary the keys alone count.
        self._by_target: dict[str, dict[PendingSend, None]] = {}
        self._in_flight: dict[PendingSend, None] = {}

    def __len__(self) -> int:
        return len(self._sends)

    def all(self) -> list[PendingSend]:
        return list(self._sends.values())

    def get(self, envelope_id: str | None) -> PendingSend | None:
        return self._sends.get(envelope_id or "")

    def add(self, send: PendingSend) -> None:
        self._sends[send.id] = send
        self._by_target.setdefault(send.to, {})[send] = None

    def remove(self, send: PendingSend) -> None:
        self.requeue(send)
        if self._sends.pop(send.id, None) is None:
            return
        lane = self._by_target[send.to]
        del lane[send]
        if not lane:
            del self._by_target[send.to]

    def first_waiting(self, holds: Holds, most: int) -> PendingSend | None:
        """most: how many may be in flight.

        What is being drafted or held holds up what goes to the same agent after it, and nothing else: strangers may
        have no key for long. Of what a hold lets out again one is in flight at a time, and of all holds at most half of
        `most`: what is refused again and again leaves places for the rest.
        """
        return self._first_of(self._sends.values(), holds, most)

    def may_go_to(self, target: str, holds: Holds, most: int) -> bool:
        """Whether the first that waits for this target may go out."""
        waiting = (send for send in self._by_target.get(target, ()) if not send.is_in_flight)
        return self._first_of(islice(waiting, 1), holds, most) is not None

    def _first_of(self, sends: Iterable[PendingSend], holds: Holds, most: int) -> PendingSend | None:
        if len(self._in_flight) >= most:
            return None
        trials = [send for send in self._in_flight if holds.of(send)]
        tried = {hold for send in trials for hold in holds.of(send)}
        may_try = len(trials) < max(1, most // 2)
        held_up = {send.to for send in trials}
        for send in sends:
            if send.is_in_flight or send.to in held_up:
                continue
            is_free = all(may_try and hold.timer is None and hold not in tried for hold in holds.of(send))
            if is_free and not send.is_being_drafted:
                return send
            held_up.add(send.to)
        return None

    def too_late(self, holds: Holds, target: str | None = None) -> Iterator[tuple[PendingSend, Hold]]:
        """What waits behind a hold for longer than its call has time, and that hold. target: of those to it alone."""
        held_up: dict[str, Hold] = {}
        for send in self.all() if target is None else list(self._by_target.get(target, ())):
            if send.is_in_flight:
                continue
            before = [held_up[send.to]] if send.to in held_up else []
            last = last_of([*holds.of(send), *before])
            if last is None:
                continue
            if last.ends_at >= send.deadline:
                yield send, last
            else:
                held_up[send.to] = last

    def mark_in_flight(self, send: PendingSend, signed: SignedEnvelope) -> None:
        send.signed = signed
        send.is_in_flight = True
        self._in_flight[send] = None

    def requeue(self, send: PendingSend) -> None:
        """It is not in flight any more; it keeps its place in the order."""
        send.is_in_flight = False
        self._in_flight.pop(send, None)

    def requeue_all(self) -> None:
        """The connection on which they went out is gone, or was replaced: whether they were accepted is not known."""
        for send in tuple(self._in_flight):
            send.is_outcome_unknown = True
            self.requeue(send)
