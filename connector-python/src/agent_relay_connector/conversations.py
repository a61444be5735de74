"""Questions that wait for their reply. Source: docs/protocol.md#conversations."""

import asyncio
from dataclasses import dataclass

from .types import Delivery

REPLY = "message.reply"


@dataclass(frozen=True, eq=False)
class Question:
    task_id: str
    # Who was asked: nobody else's reply counts.
    agent: str
    is_sealed: bool
    reply: "asyncio.Future[Delivery]"


class Conversations:
    def __init__(self) -> None:
        self._questions: dict[str, Question] = {}

    def ask(self, question: Question) -> None:
        self._questions[question.task_id] = question

    def forget(self, question: Question) -> None:
        self._questions.pop(question.task_id, None)

    def takes(self, delivery: Delivery) -> bool:
        """True for the reply to a question. A late, a second or a foreign one is a delivery like any other."""
        question = self._questions.get(delivery.task_id or "")
        if question is None or delivery.type != REPLY or delivery.sender != question.agent:
            return False
        if question.is_sealed and not delivery.sealed:
            return False
        self.forget(question)
        if not question.reply.done():
            question.reply.set_result(delivery)
        return True

    def end(self, error: Exception) -> None:
        """Nothing more comes in."""
        for question in tuple(self._questions.values()):
            if not question.reply.done():
                question.reply.set_exception(error)


def task_of_reply(delivery: Delivery) -> str:
    """What a reply says it is about."""
    return delivery.task_id or delivery.envelope["id"]
