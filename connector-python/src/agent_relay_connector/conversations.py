"""The messages of this agent, and its questions until they are replied to. Source: docs/protocol.md#conversations."""

import asyncio
import time
import uuid
from dataclasses import dataclass, replace
from typing import NoReturn

from .backoff import growing_s
from .errors import RelayError
from .limits import PRESENCE_CAP_S
from .message_options import MessageOptions
from .no_reply import no_reply
from .own_envelopes import OwnEnvelopes, present
from .presence_watch import PresenceWatch
from .sender_verifier import SenderVerifier
from .target_not_online import target_not_online
from .types import Accepted, Delivery, JsonObject

REPLY = "message.reply"


@dataclass(eq=False)
class _Question:
    task_id: str
    # Who was asked: nobody else's reply counts.
    agent: str
    is_sealed: bool
    reply: "asyncio.Future[Delivery]"
    # While it is being sent, the send says how it ends.
    is_sending: bool = False
    # Once the target may have it.
    envelope_id: str | None = None


class Conversations:
    def __init__(
        self,
        own_envelopes: OwnEnvelopes,
        presence: PresenceWatch,
        verifier: SenderVerifier,
        seals_all: bool,
        max_questions: int,
    ) -> None:
        """seals_all: every message is sealed, asked or not. max_questions: that may be without a reply."""
        self._own_envelopes = own_envelopes
        self._presence = presence
        self._verifier = verifier
        self._seals_all = seals_all
        self._max_questions = max_questions
        # By task.
        self._questions: dict[str, _Question] = {}
        self._ended_by: RelayError | None = None
        self._is_lost = False
        # By time.monotonic().
        self._lost_at = float("-inf")

    async def send(self, to: str, payload: JsonObject, options: MessageOptions) -> Accepted:
        """Raises RelayError."""
        content = present(type=options.type, to=to, task_id=options.task_id, payload=payload)
        self._own_envelopes.check(content)
        if options.wait_online_s > 0:
            await self._presence.until_online(to, options.wait_online_s)
        ack = await self._own_envelopes.message(content, self._seals(options), options.timeout_s)
        return Accepted(ack.envelope_id, ack.delivery, ack.duplicate)

    async def reply(self, delivery: Delivery, payload: JsonObject, options: MessageOptions) -> Accepted:
        """Raises RelayError."""
        if not _is_answerable(delivery.type):
            raise RelayError("not_answerable", envelope_id=delivery.envelope["id"])
        task_id = delivery.task_id or delivery.envelope["id"]
        seal = delivery.sealed or options.seal
        return await self.send(delivery.sender, payload, replace(options, type=REPLY, task_id=task_id, seal=seal))

    async def ask(self, to: str, payload: JsonObject, options: MessageOptions) -> Delivery:
        """Returns the reply. Raises RelayError."""
        if self._ended_by is not None:
            raise self._ended_by
        if isinstance(options.type, str) and not _is_answerable(options.type):
            raise RelayError("not_answerable")
        if len(self._questions) >= self._max_questions:
            raise RelayError("queue_full")
        self._own_envelopes.check({"type": options.type, "to": to, "payload": payload})
        reply: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
        question = _Question(str(uuid.uuid4()), to, self._seals(options), reply)
        self._questions[question.task_id] = question
        unanswered = asyncio.create_task(self._put(question, payload, options))
        try:
            await asyncio.wait((reply, unanswered), return_when=asyncio.FIRST_COMPLETED)
            return reply.result() if reply.done() else unanswered.result()
        finally:
            self._questions.pop(question.task_id, None)
            unanswered.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
            unanswered.cancel()

    def takes(self, delivery: Delivery) -> bool:
        """True for the reply to a question. A late, a second or a foreign one is a delivery like any other."""
        question = self._questions.get(delivery.task_id or "")
        if question is None or delivery.type != REPLY or delivery.sender != question.agent:
            return False
        if question.is_sealed and not delivery.sealed:
            return False
        if not self._is_believed(delivery):
            return False
        del self._questions[question.task_id]
        if not question.reply.done():
            question.reply.set_result(delivery)
        return True

    def lost(self) -> None:
        """The connection is lost: a reply that comes while there is none is lost, too."""
        if not self._is_lost:
            self._lost_at = time.monotonic()
        self._is_lost = True

    def found(self) -> None:
        """The connection is back."""
        self._is_lost = False

    def end(self, error: RelayError) -> None:
        """Nothing more comes in, and nothing goes out. Sends on their way have ended before."""
        self._ended_by = error
        self._presence.end(error)
        for question in self._questions.values():
            if not question.is_sending and not question.reply.done():
                outcome = error.for_call("unknown" if question.envelope_id else "refused", question.envelope_id)
                question.reply.set_exception(outcome)

    async def _put(self, question: _Question, payload: JsonObject, options: MessageOptions) -> NoReturn:
        """Puts the question. Raises why there is no reply."""
        online_by = time.monotonic() + options.wait_online_s
        attempt = 0
        while True:
            if options.wait_online_s > 0:
                await self._presence.until_online(question.agent, online_by - time.monotonic())
            asked_at = time.monotonic()
            accepted = await self._send(question, payload, options)
            # A duplicate says how the target is now: it may have got the first.
            if accepted.delivery.can_deliver_realtime or accepted.duplicate:
                question.envelope_id = accepted.envelope_id
                await self._silence(asked_at, options.timeout_s, accepted.envelope_id)
            wait_s = growing_s(attempt, PRESENCE_CAP_S)
            if time.monotonic() + wait_s >= online_by:
                raise target_not_online(accepted.delivery.status, accepted.envelope_id)
            await asyncio.sleep(wait_s)
            attempt += 1

    async def _silence(self, asked_at: float, timeout_s: float, envelope_id: str) -> NoReturn:
        """The target may have the question, and says nothing."""
        await asyncio.sleep(max(0.0, asked_at + timeout_s - time.monotonic()))
        lost_s = time.monotonic() - self._lost_at if self._lost_at > asked_at else None
        raise no_reply(envelope_id, lost_s, self._is_lost)

    async def _send(self, question: _Question, payload: JsonObject, options: MessageOptions) -> Accepted:
        question.is_sending = True
        try:
            sending = replace(options, task_id=question.task_id, wait_online_s=0)
            return await self.send(question.agent, payload, sending)
        finally:
            question.is_sending = False

    def _seals(self, options: MessageOptions) -> bool:
        return options.seal or self._seals_all

    def _is_believed(self, delivery: Delivery) -> bool:
        """Whom this agent pinned can prove who they are: what does not is not theirs."""
        verifier, key_id = self._verifier, delivery.envelope["key_id"]
        return not verifier.is_pinned(delivery.sender) or verifier.is_verified(delivery.verified, key_id)


def _is_answerable(kind: str) -> bool:
    """A reply is not replied to: two agents that both reply would go on forever. Sessions are answered by decisions."""
    return kind.startswith("message.") and kind != REPLY
