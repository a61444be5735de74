"""Parts that need no relay."""

import asyncio
import hashlib
import unittest
from typing import Any

from agent_relay_connector import RelayError
from agent_relay_connector.backoff import backoff_s, jittered_s
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.bounded_queue import BoundedQueue
from agent_relay_connector.clock import Clock, machine_ms
from agent_relay_connector.errors import final_close
from agent_relay_connector.frames import AckFrame, ErrorFrame, HelloFrame, read_frame
from agent_relay_connector.gateway_keys import read_gateway_keys
from agent_relay_connector.limits import MAX_SENDERS
from agent_relay_connector.read_envelope import read_envelope
from agent_relay_connector.replay_guard import ReplayGuard
from agent_relay_connector.types import Envelope

ENVELOPE: dict[str, Any] = {
    **{"id": "e-1", "type": "message.send", "from": "agent://a", "to": "agent://b"},
    **{"payload": {}, "ts": 1_790_000_000_000, "key_id": "a-1", "sig": "s"},
}


class Waits(unittest.TestCase):
    def test_are_random_up_to_a_bound_that_doubles(self) -> None:
        for attempt, bound in ((0, 0.25), (1, 0.5), (4, 4), (5, 5), (5000, 5)):
            waits = [backoff_s(attempt) for _ in range(200)]
            self.assertLessEqual(max(waits), bound)
            self.assertGreater(max(waits), bound / 2)
            self.assertLess(min(waits), bound / 2)
        self.assertTrue(all(2 <= jittered_s(2) <= 3 for _ in range(200)))


class TheClock(unittest.TestCase):
    def test_follows_the_relay_to_sign_and_within_bounds_to_judge(self) -> None:
        clock = Clock()
        clock.measure(machine_ms() - 3_600_000)
        self.assertAlmostEqual(clock.now(), machine_ms() - 3_600_000, delta=1000)
        self.assertAlmostEqual(clock.bounded_now(), machine_ms() - 300_000, delta=1000)
        self.assertFalse(clock.is_trusted)


def is_pinned(agent: str) -> bool:
    return agent == "agent://a"


class AReplayGuard(unittest.TestCase):
    def envelope(self, **changes: Any) -> Envelope:
        read = read_envelope({**ENVELOPE, "ts": machine_ms(), **changes})
        assert read is not None
        return read

    def test_knows_what_it_remembers_by_sender_and_id(self) -> None:
        guard = ReplayGuard(Clock(), 600, is_pinned)
        for sender in ("agent://a", "agent://b"):
            envelope = self.envelope(**{"from": sender})
            self.assertFalse(guard.is_repeat(envelope))
            guard.remember(envelope)
            self.assertTrue(guard.is_repeat(envelope))
        self.assertFalse(guard.is_repeat(self.envelope(**{"from": "agent://c"})))

    def test_takes_what_is_new_of_a_pinned_agent_however_many_strangers_send(self) -> None:
        guard = ReplayGuard(Clock(), 600, is_pinned)
        for n in range(MAX_SENDERS + 1):
            guard.remember(self.envelope(**{"from": f"agent://x{n}"}, ts=machine_ms() + 300_000))
        self.assertFalse(guard.is_stale(self.envelope()))
        # Not so one of the strangers: it was forgotten to make room for the last.
        self.assertTrue(guard.is_stale(self.envelope(**{"from": "agent://x0"})))

    def test_refuses_what_is_old_or_of_the_future_unless_told_otherwise(self) -> None:
        guard = ReplayGuard(Clock(), 600, is_pinned)
        for age_ms, is_stale in ((0, False), (590_000, False), (610_000, True), (-610_000, True)):
            self.assertEqual(guard.is_stale(self.envelope(ts=machine_ms() - age_ms)), is_stale)
        self.assertFalse(ReplayGuard(Clock(), 0, is_pinned).is_stale(self.envelope(ts=1)))

    def test_cannot_judge_when_the_clocks_are_far_apart(self) -> None:
        clock = Clock()
        clock.measure(machine_ms() + 301_000)
        self.assertFalse(ReplayGuard(clock, 600, is_pinned).can_judge)
        self.assertTrue(ReplayGuard(clock, 0, is_pinned).can_judge)


class Frames(unittest.TestCase):
    def test_of_any_form_break_nothing(self) -> None:
        unknown = ['{"frame":"new"}', '{"frame":"notice","notice":"new"}']
        texts: list[object] = [b"x", "", "[]", *unknown, "[" * 50_000, "nul"]
        for text in texts:
            self.assertIsNone(read_frame(text))
        hello = read_frame('{"frame":"hello","limits":{"heartbeat_interval_ms":"x","max_unacknowledged":1e9}}')
        self.assertEqual(hello, HelloFrame(None, None, 15, 300_000, 64, None))
        ack = read_frame('{"frame":"ack","envelope_id":7,"target_delivery":[]}')
        assert isinstance(ack, AckFrame)
        self.assertFalse(ack.delivery.can_deliver_realtime)

    def test_ask_for_four_heartbeats_a_second_at_most_and_one_a_minute_at_least(self) -> None:
        for asked_ms, interval_s in (("1", 0.25), ("1e-300", 0.25), ("400", 0.4), ("0", 15), ("-1", 15), ("1e300", 60)):
            hello = read_frame('{"frame":"hello","limits":{"heartbeat_interval_ms":%s}}' % asked_ms)
            assert isinstance(hello, HelloFrame)
            self.assertEqual(hello.heartbeat_interval_s, interval_s)

    def test_of_a_relay_tell_a_time_or_none_and_no_wait_without_end(self) -> None:
        latest = 8_640_000_000_000_000
        none = (("1e300", None), ("-1", None), ("1.5", None), (str(latest + 1), None))
        for said, time_ms in (("1e3", 1000), (str(latest), latest), *none):
            for kind in ("hello", "error"):
                frame = read_frame(f'{{"frame":"{kind}","server_time":{said}}}')
                assert isinstance(frame, (HelloFrame, ErrorFrame))
                self.assertEqual(frame.server_time, time_ms)
        for asked, wait_s in (("1e290", 3600), ("1500", 1.5), ("0", 1), ("-5", 1), ('"5"', 1), ("1e400", 1)):
            frame = read_frame(f'{{"frame":"error","retry_after_ms":{asked}}}')
            assert isinstance(frame, ErrorFrame)
            self.assertEqual(frame.retry_after_s, wait_s, asked)

    def test_an_envelope_has_its_signed_members_and_no_other(self) -> None:
        self.assertEqual(read_envelope({**ENVELOPE, "more": 1}), ENVELOPE)
        times: list[dict[str, Any]] = [{"ts": "1"}, {"ts": 1.5}, {"ts": True}]
        others: list[dict[str, Any]] = [{"id": 1}, {"to": None}, {"payload": []}, *times]
        for changes in others:
            self.assertIsNone(read_envelope({**ENVELOPE, **changes}), changes)

    def test_an_envelope_has_a_payload_that_the_relay_would_take(self) -> None:
        deep: object = []
        for _ in range(5000):
            deep = [deep]
        payloads: list[dict[str, object]] = [{"a": deep}, {"a": [[]] * 2000}, {"__proto__": 1}]
        for payload in payloads:
            self.assertIsNone(read_envelope({**ENVELOPE, "payload": payload}))

    def test_an_envelope_has_members_as_long_as_the_protocol_lets_them_be(self) -> None:
        # Repeated, each is of the right form but for its length.
        longest = {"id": 128, "key_id": 128, "task_id": 128, "from": 8 + 63, "type": 8 + 32}
        for name, most in longest.items():
            text = str({"task_id": "", **ENVELOPE}[name])
            held, too_long = (text + "x" * (length - len(text)) for length in (most, most + 1))
            self.assertIsNotNone(read_envelope({**ENVELOPE, name: held}), name)
            self.assertIsNone(read_envelope({**ENVELOPE, name: too_long}), name)
        for changes in ({"id": "e 1"}, {"key_id": ""}, {"task_id": ""}, {"from": "b"}, {"type": "Message.send"}):
            self.assertIsNone(read_envelope({**ENVELOPE, **changes}), changes)


class Closes(unittest.TestCase):
    def test_that_are_final_have_a_code(self) -> None:
        codes = {code: error.code for code in range(1000, 5000) if (error := final_close(code)) is not None}
        policy = dict.fromkeys((1003, 1007, 1008, 1009), "policy")
        self.assertEqual(codes, {**policy, 4403: "key_revoked", 4409: "superseded"})


class GatewayKeys(unittest.TestCase):
    def test_have_the_digest_of_their_key_for_an_id(self) -> None:
        public = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
        key_id = "gateway-" + encode_base64url(hashlib.sha256(public.encode()).digest())[:22]
        listed = {"key_id": key_id, "alg": "ed25519", "public_key": public}
        self.assertEqual(list(read_gateway_keys([listed, {**listed, "key_id": "gateway-x"}, None])), [key_id])
        self.assertEqual(read_gateway_keys({}), {})


class ABoundedQueue(unittest.IsolatedAsyncioTestCase):
    async def test_drops_the_oldest_and_ends_after_what_is_left(self) -> None:
        queue: BoundedQueue[int] = BoundedQueue(2, lambda _: "agent://a")
        self.assertEqual([queue.push(n) for n in range(3)], [True, True, False])
        queue.end()
        self.assertEqual([await queue.take() for _ in range(3)], [1, 2, None])

    async def test_drops_nothing_of_others_for_the_sender_with_the_most(self) -> None:
        queue: BoundedQueue[str] = BoundedQueue(4, lambda item: item[0])
        for item in ("a1", "b1", "a2", "b2", "c1", "b3", "b4"):
            queue.push(item)
        queue.end()
        self.assertEqual([await queue.take() for _ in range(5)], ["a2", "c1", "b3", "b4", None])

    async def test_wakes_readers_each_for_one_item(self) -> None:
        queue: BoundedQueue[int] = BoundedQueue(2, lambda _: "agent://a")
        readers = [asyncio.create_task(queue.take()) for _ in range(3)]
        await asyncio.sleep(0)
        queue.push(1)
        queue.push(2)
        queue.end(RelayError("superseded"))
        results = await asyncio.gather(*readers, return_exceptions=True)
        self.assertEqual([str(result)[:10] for result in results], ["1", "2", "superseded"])
