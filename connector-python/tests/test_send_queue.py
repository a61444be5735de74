"""Sends that go out again, or not."""

import asyncio
import random
import unittest
from collections.abc import Callable, Sequence
from typing import Any
from unittest.mock import patch

from agent_relay_connector import RelayError, holds, pending_sends, send_queue, sorted_list
from agent_relay_connector.background import Background
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.clock import Clock, machine_ms
from agent_relay_connector.frames import AckFrame, ErrorFrame
from agent_relay_connector.send_queue import SendQueue
from agent_relay_connector.signer import Signer
from agent_relay_connector.strict_json import parse_json
from agent_relay_connector.types import TargetDelivery

from .kit import GENEROUS_S, counted_lines, later

HOLD_S = 10.0
# The longest that a hold of it lasts.
HELD_S = HOLD_S * 1.5
# Of a send: longer than a hold.
TIMEOUT_S = 100.0
# A hold that outlasts a send.
LONG_HOLD_S = 1000.0


# No error of this package.
FAULT = LookupError("a fault")


def failing_once(method: Callable[..., Any]) -> Callable[..., Any]:
    faults = [FAULT]

    def call(*given: object) -> Any:
        if faults:
            raise faults.pop()
        return method(*given)

    return call


class Writer:
    """A connection on which these keys were registered, the last one last."""

    max_clock_skew_ms = 300_000.0
    max_in_flight = 64

    def __init__(self, *signers: Signer) -> None:
        self.signers = signers
        self.sent: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.texts: list[str] = []

    @property
    def signer(self) -> Signer:
        return self.signers[-1]

    def accepts(self, key_id: str) -> bool:
        return any(signer.key_id == key_id for signer in self.signers)

    def send(self, text: str) -> None:
        self.texts.append(text)
        envelope = parse_json(text)
        self.sent.put_nowait((envelope["id"], envelope["key_id"]))


class ASend(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.clock, self.background = Clock(), Background()
        self.failure: RelayError | None = None
        self.old, self.new = (
            Signer({"key_id": name, "alg": "ed25519", "private_key": encode_base64url(bytes([n] * 32))}, self.clock)
            for n, name in enumerate(("old", "new"))
        )
        self.queue = SendQueue(self.clock, 100, lambda: None, self.background, lambda: self.failure)

    async def asyncTearDown(self) -> None:
        await self.background.stop()

    def add(
        self,
        name: str,
        to: str = "agent://b",
        drafted: "asyncio.Future[None] | None" = None,
        kind: str = "message.send",
        timeout_s: float = TIMEOUT_S,
    ) -> "asyncio.Task[object]":
        """drafted: what the draft waits for, as a sealed one does."""
        text = self.old.draft({"id": name, "type": kind, "from": "agent://a", "to": to, "payload": {}})

        async def draft() -> str:
            assert drafted is not None
            await drafted
            return text

        return asyncio.create_task(self.queue.add(name, kind, to, text if drafted is None else draft, timeout_s))

    async def outcomes(self, tasks: Sequence["asyncio.Task[object]"]) -> list[tuple[str, str]]:
        self.queue.end(RelayError("closed"))
        errors = await asyncio.gather(*tasks, return_exceptions=True)
        return [(error.code, error.outcome) for error in errors if isinstance(error, RelayError)]

    async def test_that_waits_to_be_sealed_holds_up_what_goes_to_the_same_agent_after_it_and_nothing_else(self) -> None:
        key: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
        sending = [self.add("sealed", "agent://stranger", key), self.add("after it", "agent://stranger"), self.add("x")]
        writer = Writer(self.old)
        self.queue.resume(writer)
        self.assertEqual(await writer.sent.get(), ("x", "old"))
        sending.append(self.add("y"))
        self.assertEqual(await writer.sent.get(), ("y", "old"))
        key.set_result(None)
        self.assertEqual([await writer.sent.get(), await writer.sent.get()], [("sealed", "old"), ("after it", "old")])
        self.assertEqual(await self.outcomes(sending), [("closed", "unknown")] * 4)

    async def test_without_a_connection_says_so_and_why_as_far_as_that_is_known(self) -> None:
        text = self.old.draft({"id": "x", "type": "message.send", "from": "agent://a", "to": "agent://b", "payload": {}})
        with self.assertRaises(RelayError) as raised:
            await self.queue.add("x", "message.send", "agent://b", text, 0.02)
        self.assertIn("There is no connection to the relay.", raised.exception.message)
        self.failure = RelayError("unreachable", "Connection refused.", "Start the relay.")
        with self.assertRaises(RelayError) as raised:
            await self.queue.add("y", "message.send", "agent://b", text, 0.02)
        error = raised.exception
        self.assertEqual((error.code, error.outcome, error.hint), ("timeout", "refused", "Start the relay."))
        self.assertIn("Connection refused.", error.message)
        self.assertIs(error.__cause__, self.failure)

    async def test_goes_out_where_there_is_no_key_to_seal_to_the_same_agent_before(self) -> None:
        key: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
        sealed, after = self.add("sealed", drafted=key), self.add("after it")
        writer = Writer(self.old)
        self.queue.resume(writer)
        key.set_exception(RelayError("recipient_unknown"))
        self.assertEqual(await writer.sent.get(), ("after it", "old"))
        self.assertEqual(
            await self.outcomes([sealed, after]), [("recipient_unknown", "refused"), ("closed", "unknown")]
        )

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

    def refuse(self, name: str, code: str, retry_after_s: float = 0.001) -> None:
        self.queue.refuse(ErrorFrame(code, None, None, None, (), name, retry_after_s, None))

    async def refused(self, code: str, then: Callable[[], None]) -> tuple[str, str]:
        """What becomes of a send that was refused so, after something happened."""
        writer = Writer(self.old)
        self.queue.resume(writer)
        sending = self.add("a")
        await writer.sent.get()
        then()
        self.refuse("a", code)
        with self.assertRaises(RelayError) as raised:
            await sending
        self.assertEqual(len(writer.texts), 1)
        return raised.exception.code, raised.exception.outcome

    async def test_whose_clock_was_refused_is_not_signed_anew(self) -> None:
        outcome = await self.refused("clock_skew", lambda: self.clock.measure(machine_ms() + 3_600_000))
        self.assertEqual(outcome, ("clock_skew", "refused"))

    async def test_that_was_refused_for_the_moment_until_it_was_too_old_is_not_signed_anew(self) -> None:
        outcome = await self.refused("rate_limited", lambda: self.clock.measure(machine_ms() + 299_000))
        self.assertEqual(outcome, ("rate_limited", "refused"))

    def ack(self, name: str) -> None:
        self.queue.acknowledge(AckFrame(name, False, TargetDelivery("online", True), "", "approved"))

    async def out(self, writer: Writer, count: int) -> list[str]:
        """What goes out on it next; no more than that does."""
        names = [(await asyncio.wait_for(writer.sent.get(), GENEROUS_S))[0] for _ in range(count)]
        for _ in range(3):
            await asyncio.sleep(0)
        self.assertTrue(writer.sent.empty())
        return names

    async def test_to_a_target_out_of_reach_holds_that_target_alone_and_tries_it_by_one(self) -> None:
        writer = Writer(self.old)
        self.queue.resume(writer)
        sending = [self.add(name) for name in "abc"]
        self.assertEqual(await self.out(writer, 3), ["a", "b", "c"])
        for name in "ab":
            self.refuse(name, "unavailable", HOLD_S)
        self.ack("c")
        sending += [self.add("d"), self.add("to c", "agent://c")]
        self.assertEqual(await self.out(writer, 1), ["to c"])
        with later(HELD_S):
            self.assertEqual(await self.out(writer, 1), ["a"])
            self.ack("a")
            self.assertEqual(await self.out(writer, 2), ["b", "d"])
        await self.outcomes(sending)

    async def test_goes_out_on_the_next_connection_whatever_held_its_target_on_the_last_one(self) -> None:
        writer = Writer(self.old)
        self.queue.resume(writer)
        sending = [self.add("a")]
        await self.out(writer, 1)
        self.refuse("a", "unavailable", HOLD_S)
        following = Writer(self.old)
        self.queue.resume(following)
        self.assertEqual(await self.out(following, 1), ["a"])
        await self.outcomes(sending)

    async def test_goes_out_past_one_to_another_target_that_is_out_of_reach(self) -> None:
        writer = Writer(self.old)
        self.queue.resume(writer)
        sending = [self.add("refused")]
        await self.out(writer, 1)
        self.refuse("refused", "unavailable", HOLD_S)
        sending.append(self.add("to c", "agent://c"))
        self.assertEqual(await self.out(writer, 1), ["to c"])
        await self.outcomes(sending)

    async def test_to_targets_out_of_reach_leaves_half_of_the_places_to_the_rest_however_many_they_are(self) -> None:
        writer = Writer(self.old)
        self.queue.resume(writer)
        sending = [self.add(f"{n}", f"agent://lost{n}") for n in range(64)]
        for name in await self.out(writer, 64):
            self.refuse(name, "unavailable", HOLD_S)
        with later(HELD_S):
            await self.out(writer, 32)
            sending.append(self.add("to b"))
            self.assertEqual(await self.out(writer, 1), ["to b"])
        await self.outcomes(sending)

    async def test_that_met_the_rate_holds_its_kind_alone_and_what_goes_to_its_target_after_it(self) -> None:
        writer = Writer(self.old)
        self.queue.resume(writer)
        sending = [self.add("to b", kind="session.request")]
        await self.out(writer, 1)
        self.refuse("to b", "rate_limited", HOLD_S)
        sending += [
            self.add("to c", "agent://c", kind="session.request"),
            self.add("after it"),
            self.add("message", "agent://d"),
            self.add("decision", "agent://d", kind="session.approve"),
        ]
        self.assertEqual(await self.out(writer, 2), ["message", "decision"])
        with later(HELD_S):
            self.assertEqual(await self.out(writer, 1), ["to b"])
            self.ack("to b")
            self.assertEqual(await self.out(writer, 2), ["to c", "after it"])
        await self.outcomes(sending)

    async def test_that_cannot_be_answered_in_its_time_is_refused_at_once_with_the_code_and_the_time(self) -> None:
        writer = Writer(self.old)
        self.queue.resume(writer)
        refused = self.add("refused", kind="session.request")
        await self.out(writer, 1)
        self.refuse("refused", "rate_limited", LONG_HOLD_S)
        after = self.add("later", "agent://c", kind="session.request")
        waiting = self.add("waits", "agent://d", kind="session.request", timeout_s=2 * LONG_HOLD_S)
        behind = self.add("behind it", "agent://d")
        lost = self.add("lost")
        self.assertEqual(await self.out(writer, 1), ["lost"])
        self.refuse("lost", "unavailable", LONG_HOLD_S)
        for _ in range(3):
            await asyncio.sleep(0)
        self.assertTrue(all(sending.done() for sending in (refused, after, behind, lost)))
        errors = await asyncio.gather(refused, after, behind, lost, return_exceptions=True)
        self.assertEqual(
            [(error.code, error.outcome) for error in errors if isinstance(error, RelayError)],
            [("rate_limited", "refused")] * 3 + [("unavailable", "unknown")],
        )
        for error in errors:
            assert isinstance(error, RelayError)
            self.assertGreater(error.retry_after or 0, LONG_HOLD_S / 2)
            self.assertIn(f"{error.retry_after} s", error.hint)
        await self.outcomes([waiting])

    async def test_without_a_connection_waits_whatever_held_its_kind_on_the_last_one(self) -> None:
        writer = Writer(self.old)
        self.queue.resume(writer)
        sending = [self.add("refused", kind="session.request", timeout_s=2 * LONG_HOLD_S)]
        await self.out(writer, 1)
        self.refuse("refused", "rate_limited", LONG_HOLD_S)
        self.queue.pause()
        sending.append(self.add("later", "agent://c", kind="session.request"))
        await asyncio.sleep(0)
        following = Writer(self.old)
        self.queue.resume(following)
        self.assertEqual(await self.out(following, 2), ["refused", "later"])
        await self.outcomes(sending)

    async def test_that_ended_while_it_was_tried_holds_nothing(self) -> None:
        for ends_by_time in (False, True):
            writer = Writer(self.old)
            self.queue.resume(writer)
            tried = self.add("tried")
            await self.out(writer, 1)
            self.refuse("tried", "unavailable")
            await self.out(writer, 1)
            if ends_by_time:
                with later(TIMEOUT_S):
                    await asyncio.wait([tried])
            else:
                tried.cancel()
                await asyncio.wait([tried])
            sending = [self.add("a"), self.add("b")]
            self.assertEqual(await self.out(writer, 2), ["a", "b"])
            for name in "ab":
                self.ack(name)
            await asyncio.gather(*sending)
            self.assertEqual(tried.cancelled(), not ends_by_time)
            if ends_by_time:
                self.assertIsInstance(tried.exception(), RelayError)

    async def test_to_each_of_800_targets_in_an_outage_costs_as_much_as_to_each_of_100(self) -> None:
        for code in ("unavailable", "rate_limited"):
            with self.subTest(code):
                few = await self.cost_of_outage(100, code)
                self.assertGreater(few, 100)
                self.assertLess(await self.cost_of_outage(800, code), 10 * few)

    async def cost_of_outage(self, targets: int, code: str) -> int:
        """Of envelopes that are refused and go out again, until half of them have an ack and the others are cancelled."""
        self.queue = SendQueue(self.clock, targets, lambda: None, self.background, lambda: None)
        writer = Writer(self.old)
        self.queue.resume(writer)
        sending = [self.add(f"{n}", f"agent://x{n}", timeout_s=1e6) for n in range(targets)]
        refused: set[str] = set()
        answers = rounds = 0
        with counted_lines(send_queue, holds, pending_sends, sorted_list) as cost:
            while answers - len(refused) < targets / 2:
                rounds += writer.sent.empty()
                self.assertLess(rounds, targets)
                with later(HELD_S * rounds):
                    name, _ = await asyncio.wait_for(writer.sent.get(), GENEROUS_S)
                if name in refused:
                    self.ack(name)
                else:
                    self.refuse(name, code, HOLD_S)
                refused.add(name)
                answers += 1
            for each in sending:
                each.cancel()
            await asyncio.wait(sending)
        return cost[0]

    async def test_that_cannot_be_drafted_tells_its_caller_why_and_holds_up_nothing(self) -> None:
        key: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
        key.set_exception(FAULT)
        await self.fails_alone(self.add("a", drafted=key), Writer(self.old))

    async def test_that_cannot_be_signed_tells_its_caller_why_and_holds_up_nothing(self) -> None:
        with patch.object(self.old, "sign", failing_once(self.old.sign)):
            await self.fails_alone(self.add("a"), Writer(self.old))

    async def test_that_cannot_be_written_tells_its_caller_why_and_holds_up_nothing(self) -> None:
        writer = Writer(self.old)
        with patch.object(writer, "send", failing_once(writer.send)):
            await self.fails_alone(self.add("a"), writer)

    async def fails_alone(self, sending: "asyncio.Task[object]", writer: Writer) -> None:
        following = self.add("following")
        await asyncio.sleep(0)
        self.queue.resume(writer)
        with self.assertRaises(LookupError) as raised:
            await asyncio.wait_for(sending, GENEROUS_S)
        self.assertIs(raised.exception, FAULT)
        self.assertEqual(await self.out(writer, 1), ["following"])
        await self.outcomes([following])

    async def test_of_which_the_relay_cannot_say_whether_it_took_it_has_an_unknown_outcome(self) -> None:
        outcome = await self.refused("internal_error", lambda: None)
        self.assertEqual(outcome, ("internal_error", "unknown"))

    async def test_that_is_out_again_when_its_time_is_over_and_was_refused_before_has_that_code(self) -> None:
        writer = Writer(self.old)
        self.queue.resume(writer)
        sending = self.add("a")
        await self.out(writer, 1)
        self.refuse("a", "unavailable")
        await self.out(writer, 1)
        with later(TIMEOUT_S), self.assertRaises(RelayError) as raised:
            await asyncio.wait_for(sending, GENEROUS_S)
        self.assertEqual((raised.exception.code, raised.exception.outcome), ("unavailable", "unknown"))

    async def test_goes_out_with_one_signature_whatever_a_relay_answers_and_whatever_time_it_tells(self) -> None:
        for seed in range(100):
            await self.asyncSetUp()
            texts = await self.happenings(random.Random(seed))
            names = [parse_json(text)["id"] for text in texts]
            self.assertEqual(len(set(texts)), len(set(names)), f"seed {seed}")
            self.assertGreater(len(texts), 0)

    async def happenings(self, chance: random.Random) -> list[str]:
        """What goes out of two sends on connections that a relay ends, each after an answer or a lie."""
        sending = [self.add(name) for name in ("a", "b")]
        texts: list[str] = []
        now_s = machine_ms() / 1000
        for _ in range(chance.randrange(1, 12)):
            now_s += chance.choice((0, 0, 200, -200))
            with patch("time.time", return_value=now_s):
                writer = Writer(*chance.choice(((self.old,), (self.old, self.new), (self.new,))))
                self.queue.resume(writer)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                if chance.random() < 0.4:
                    self.clock.measure(machine_ms() + chance.choice((290_000, -290_000, 3_600_000)))
                if chance.random() < 0.8:
                    codes = ("clock_skew", "rate_limited", "not_registered", "unavailable")
                    self.refuse(chance.choice("ab"), chance.choice(codes))
                if chance.random() < 0.3:
                    self.queue.pause()
                texts += writer.texts
        await self.outcomes(sending)
        await self.background.stop()
        return texts
