"""Deliveries of the agent: checked, then handed to listeners, and kept for readers."""

from collections import Counter
from collections.abc import AsyncGenerator, Mapping

from .background import Background
from .bounded_queue import BoundedQueue
from .chains import Chains
from .clock import machine_ms
from .conversations import Conversations
from .delivery_judge import DeliveryJudge, IncomingEnvelope
from .emitter import Emitter
from .errors import RelayError
from .frames import DeliverFrame
from .read_envelope import read_envelope
from .types import Delivery


class Inbox:
    """Those of one sender one after the other, so that their order holds; no sender waits for another's."""

    def __init__(
        self,
        judge: DeliveryJudge,
        conversations: Conversations,
        emitter: Emitter,
        max_inbox: int,
        background: Background,
    ) -> None:
        self._judge = judge
        self._conversations = conversations
        self._emitter = emitter
        self._max_inbox = max_inbox
        self._queue: BoundedQueue[Delivery] = BoundedQueue(max_inbox, lambda delivery: delivery.sender)
        # By sender.
        self._chains = Chains(background)
        self._waiting = 0
        self._is_read = False
        self._has_ended = False
        self._overflowed = 0
        self._dropped: Counter[str] = Counter()

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many deliveries were dropped for what they are, by the code of the error."""
        return dict(self._dropped)

    def receive(self, frame: DeliverFrame) -> None:
        envelope = read_envelope(frame.envelope)
        if envelope is None:
            self._drop(RelayError("malformed_delivery"))
            return
        if self._waiting >= self._max_inbox:
            self._overflow()
            return
        incoming = IncomingEnvelope(envelope, frame.session_id, machine_ms())
        self._waiting += 1
        self._chains.add(envelope["from"], lambda: self._check(incoming))

    async def settled(self) -> None:
        """Returns when all that came in so far has been judged, and handed over or dropped."""
        await self._chains.settled()

    async def read(self) -> AsyncGenerator[Delivery, None]:
        self._is_read = True
        while (delivery := await self._queue.take()) is not None:
            yield delivery

    def end(self, error: RelayError | None) -> None:
        self._has_ended = True
        self._queue.end(error)

    async def _check(self, incoming: IncomingEnvelope) -> None:
        try:
            delivery = await self._judge.judge(incoming)
        except RelayError as error:
            self._drop(error)
        else:
            if delivery is not None:
                self._deliver(delivery)
        finally:
            self._waiting -= 1

    def _deliver(self, delivery: Delivery) -> None:
        """With a listener of deliveries, they are kept for readers only after the first read."""
        if self._has_ended or self._conversations.takes(delivery):
            return
        is_kept = self._is_read or not self._emitter.has_listeners("delivery")
        if is_kept and not self._queue.push(delivery):
            self._overflow()
        self._emitter.emit("delivery", delivery)

    def _drop(self, error: RelayError) -> None:
        self._dropped[error.code] += 1
        self._emitter.emit("error", error)

    def _overflow(self) -> None:
        self._overflowed += 1
        self._emitter.emit("overflow", self._overflowed)
