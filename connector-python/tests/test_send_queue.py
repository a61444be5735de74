"""Sends under keys that change."""

import asyncio
import unittest
from collections.abc import Sequence

from agent_relay_connector import RelayError
from agent_relay_connector.background import Background
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.clock import Clock
from agent_relay_connector.send_queue import SendQueue
from agent_relay_connector.signer import Signer
from agent_relay_connector.strict_json import parse_json


class Writer:
    """A connection on which these keys were registered, the last one last."""

    max_clock_skew_ms = 300_000.0
    max_in_flight = 64

    def __init__(self, *signers: Signer) -> None:
        self.signers = signers
        self.sent: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    @property
    def signer(self) -> Signer:
        return self.signers[-1]

    def accepts(self, key_id: str) -> bool:
        return any(signer.key_id == key_id for signer in self.signers)

    def send(self, text: str) -> None:
        envelope = parse_json(text)
        self.sent.put_nowait((envelope["id"], envelope["key_id"]))


class ASend(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        clock, self.background = Clock(), Background()
        self.old, self.new = (
            Signer({"key_id": name, "alg": "ed25519", "private_key": encode_base64url(bytes([n] * 32))}, clock)
            for n, name in enumerate(("old", "new"))
        )
        self.queue = SendQueue(clock, 10, lambda: None, self.background)

    async def asyncTearDown(self) -> None:
        await self.background.stop()

    def add(self, name: str) -> "asyncio.Task[object]":
        draft = self.old.draft({"id": name, "type": "message.send", "from": "agent://a", "payload": {}})
        return asyncio.create_task(self.queue.add(name, draft, 5))

    async def outcomes(self, tasks: Sequence["asyncio.Task[object]"]) -> list[tuple[str, str]]:
        self.queue.end(RelayError("closed"))
        errors = await asyncio.gather(*tasks, return_exceptions=True)
        return [(error.code, error.outcome) for error in errors if isinstance(error, RelayError)]

    async def test_that_may_have_been_accepted_goes_out_again_under_its_key_alone(self) -> None:
        first = Writer(self.old)
        self.queue.resume(first)
        sending = [self.add("a")]
        self.assertEqual(await first.sent.get(), ("a", "old"))
        self.assertTrue(self.queue.needs("old"))
        second = Writer(self.old, self.new)
        self.queue.resume(second)
        sending.append(self.add("b"))
        self.assertEqual([await second.sent.get(), await second.sent.get()], [("a", "old"), ("b", "new")])
        third = Writer(self.new)
        self.queue.resume(third)
        self.assertEqual(await third.sent.get(), ("b", "new"))
        self.assertFalse(self.queue.needs("old"))
        self.assertEqual(await self.outcomes(sending), [("outcome_unknown", "unknown"), ("closed", "unknown")])
        self.assertTrue(third.sent.empty())
