"""One connection: its hello, its registers, its heartbeats, and what may be out on it."""

import asyncio
import json
import unittest
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock, patch

from websockets.datastructures import Headers

from agent_relay_connector import Connector, connection, keepalive, reconnector
from agent_relay_connector.background import Background
from agent_relay_connector.clock import Clock
from agent_relay_connector.connection import Connection, ConnectionEnd, ConnectionOptions
from agent_relay_connector.keepalive import Keepalive
from agent_relay_connector.limits import (
    ANSWER_WITHIN_S,
    BACKOFF_CAP_S,
    DRAINING_CAP_S,
    MAX_RETIRED,
    REGISTER_WITHIN_S,
    RETRY_AFTER_CAP_S,
)
from agent_relay_connector.network_errors import UpgradeRefused
from agent_relay_connector.presence import Presence, PresenceOptions, Registration
from agent_relay_connector.reconnector import Reconnector
from agent_relay_connector.signer import Signer
from agent_relay_connector.types import Notice

from .kit import GENEROUS_S, KEY, ScriptedRelay, address_of, later, serve

# Source: docs/protocol.md#limits.
RELAY_WAITS_S = 10
INTERVAL_S = 15.0


class AFirstRegister(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.received: list[str] = []
        self.was_received, self.may_answer = asyncio.Event(), asyncio.Event()
        self.registered = asyncio.Event()
        server = await serve(self.greet, "127.0.0.1", 0)
        self.url = address_of(server)
        self.ended: asyncio.Future[ConnectionEnd] = asyncio.get_running_loop().create_future()
        # Until it is set the register may not go out.
        self.may_register = asyncio.Event()
        self.connection = self.connect()
        self.addAsyncCleanup(server.wait_closed)
        self.addCleanup(server.close)
        self.addAsyncCleanup(self.connection.close)

    async def greet(self, socket: Any, *_: str) -> None:
        await socket.send('{"frame":"hello"}')
        async for text in socket:
            envelope = json.loads(text)
            self.received.append(envelope["type"])
            self.was_received.set()
            await self.may_answer.wait()
            await socket.send('{"frame":"notice","notice":"draining"}')
            ack = {"frame": "ack", "envelope_id": envelope["id"], "type": envelope["type"], "accepted": True}
            await socket.send(json.dumps(ack))

    def connect(self) -> Connection:
        async def before_register(_: object) -> None:
            await self.may_register.wait()

        clock = Clock()
        registration = Registration(Signer(KEY, clock), None)
        options = PresenceOptions("agent://a", "relay", None, clock, before_register, lambda: [registration], Mock())
        events = Mock(
            registered=lambda _: self.registered.set(),
            connection_ended=lambda _, end: self.ended.set_result(end),
        )
        return Connection(ConnectionOptions(self.url, {}, clock, Presence(options)), events)

    async def test_that_does_not_go_out_in_time_ends_the_connection_before_the_relay_does_for_good(self) -> None:
        self.assertLess(REGISTER_WITHIN_S, RELAY_WAITS_S)
        with patch.object(connection, "REGISTER_WITHIN_S", 0.05):
            self.connection.open()
            end = await asyncio.wait_for(self.ended, GENEROUS_S)
        # Without an error: another attempt follows.
        self.assertEqual((end.reason, end.error, self.received), ("lost", None, []))

    async def test_that_went_out_in_time_may_be_answered_later(self) -> None:
        self.may_register.set()
        self.connection.open()
        await self.was_received.wait()
        with later(REGISTER_WITHIN_S):
            self.may_answer.set()
            await asyncio.wait_for(self.registered.wait(), GENEROUS_S)
        self.assertEqual((self.ended.done(), self.received), (False, ["agent.register"]))

    async def test_that_cannot_be_signed_ends_the_connection_for_good_and_says_why(self) -> None:
        fault = LookupError("a fault")
        with patch.object(Presence, "sign", side_effect=fault):
            self.connection.open()
            end = await asyncio.wait_for(self.ended, GENEROUS_S)
        assert end.error is not None
        self.assertEqual((end.error.code, end.error.__cause__), ("invalid_key", fault))

    async def test_and_an_envelope_that_were_answered_are_told_from_other_frames_that_come_in(self) -> None:
        self.may_register.set()
        self.may_answer.set()
        with patch.object(connection, "Keepalive") as keepalive:
            self.connection.open()
            await asyncio.wait_for(self.registered.wait(), GENEROUS_S)
            answered = asyncio.Event()
            keepalive.return_value.answered.side_effect = answered.set
            self.connection.send('{"id": "x", "type": "message.send"}')
            await asyncio.wait_for(answered.wait(), GENEROUS_S)
        told = [name for name, _, _ in keepalive.return_value.method_calls if name not in ("start", "request_sent")]
        frames = ["frame_received", "frame_received", "answered"]
        self.assertEqual(told, ["heartbeat_sent", *frames, *frames])


class AConnectionKeepsToWhatHelloSays(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.relay = ScriptedRelay()
        await self.relay.start()
        self.addAsyncCleanup(self.relay.stop)
        self.connector = Connector(self.relay.url, agent="agent://a", key=KEY, take_over=True)
        self.addAsyncCleanup(self.connector.close)

    async def start(self, **limits: int) -> None:
        self.relay.hello = {"limits": limits}
        await asyncio.wait_for(self.connector.start(), GENEROUS_S)

    async def test_by_heartbeats_as_often_as_it_asks_for_and_ends_when_none_is_answered(self) -> None:
        await self.start(heartbeat_interval_ms=250)
        await self.relay.until(lambda: len(self.relay.of("agent.heartbeat")) >= 3)
        self.relay.answer = lambda envelope: None if envelope["type"] == "agent.heartbeat" else {"frame": "ack"}
        with self.assertLogs("agent_relay_connector", "WARNING"):
            await self.relay.until(lambda: len(self.relay.of("agent.register")) == 2)
        self.assertEqual(len(self.relay.connections), 2)

    async def test_by_as_many_envelopes_without_an_answer(self) -> None:
        self.relay.answer = lambda envelope: None if envelope["type"] == "message.send" else {"frame": "ack"}
        await self.start(max_unacknowledged=4, heartbeat_interval_ms=1000)
        sending = [asyncio.create_task(self.connector.send("agent://b", {"n": n})) for n in range(6)]
        # What may go out is out when a heartbeat is.
        await self.relay.until(lambda: bool(self.relay.of("agent.heartbeat")))
        sent = self.relay.of("message.send")
        self.assertEqual([each["payload"]["n"] for each in sent], [0, 1, 2, 3])
        self.relay.answer = lambda _: {"frame": "ack"}
        for each in sent:
            await self.relay.tell(frame="ack", envelope_id=each["id"], type=each["type"], accepted=True)
        await asyncio.wait_for(asyncio.gather(*sending), GENEROUS_S)
        self.assertEqual(len(self.relay.of("message.send")), 6)

    async def test_and_repeats_a_register_that_is_refused_for_the_moment(self) -> None:
        refusals = ["unavailable", "over_capacity"]
        self.relay.answer = lambda _: (
            {"frame": "error", "code": refusals.pop(), "retry_after_ms": 20} if refusals else {"frame": "ack"}
        )
        states: list[str] = []
        self.connector.on("state", lambda state: states.append(state.status))
        await self.start()
        self.assertEqual((len(self.relay.of("agent.register")), len(self.relay.connections)), (3, 1))
        self.assertEqual(states, ["connecting", "online"])


class AKeepalive(unittest.TestCase):
    def setUp(self) -> None:
        self.now_s = 1000.0
        # What the clock of the machine is ahead of the monotonic one.
        self.ahead_s = 5000.0
        # The timer that runs: when it is due, and what it calls.
        self.due: tuple[float, Callable[[], None]] | None = None
        times = Mock(monotonic=lambda: self.now_s, time=lambda: self.now_s + self.ahead_s)
        loop = SimpleNamespace(get_running_loop=lambda: Mock(call_later=self.call_later))
        for name, stands_in in (("time", times), ("asyncio", loop)):
            patched = patch.object(keepalive, name, stands_in)
            patched.start()
            self.addCleanup(patched.stop)
        self.heartbeats: list[float] = []
        self.timed_out: list[float] = []
        self.keepalive = Keepalive(
            INTERVAL_S, lambda: self.heartbeats.append(self.now_s), lambda: self.timed_out.append(self.now_s)
        )
        self.keepalive.start()

    def call_later(self, wait_s: float, then: Callable[[], None]) -> Mock:
        self.due = (self.now_s + wait_s, then)
        return Mock()

    def pass_s(self, seconds: float) -> None:
        end = self.now_s + seconds
        while self.due is not None and self.due[0] <= end:
            self.now_s, then = self.due
            then()
        self.now_s = end

    def test_asks_for_a_heartbeat_in_every_interval(self) -> None:
        self.pass_s(10 * INTERVAL_S)
        times = [1000.0, *self.heartbeats]
        gaps = [later - earlier for earlier, later in zip(times, times[1:])]
        self.assertGreaterEqual(len(gaps), 10)
        self.assertLessEqual(max(gaps), INTERVAL_S)
        self.assertGreater(min(gaps), INTERVAL_S / 2)

    def test_ends_a_connection_on_which_a_request_has_no_answer_and_nothing_else_came(self) -> None:
        self.keepalive.request_sent()
        self.pass_s(ANSWER_WITHIN_S)
        self.assertEqual(self.timed_out, [])
        self.keepalive.frame_received()
        self.keepalive.request_sent()
        self.pass_s(ANSWER_WITHIN_S)
        self.assertEqual(self.timed_out, [])
        self.pass_s(2)
        self.assertNotEqual(self.timed_out, [])

    def test_ends_a_connection_that_brings_deliveries_and_no_answer_for_two_intervals_after_a_heartbeat(self) -> None:
        def deliveries(seconds: float) -> None:
            for _ in range(int(seconds)):
                self.keepalive.frame_received()
                self.pass_s(1)

        self.keepalive.heartbeat_sent()
        deliveries(2 * INTERVAL_S)
        self.keepalive.answered()
        self.keepalive.heartbeat_sent()
        deliveries(2 * INTERVAL_S)
        self.assertEqual(self.timed_out, [])
        self.keepalive.heartbeat_sent()
        deliveries(2)
        self.assertNotEqual(self.timed_out, [])

    def test_asks_at_once_after_a_sleep_of_the_machine_and_ends_nothing_for_it(self) -> None:
        self.keepalive.request_sent()
        self.keepalive.heartbeat_sent()
        self.ahead_s += 3600
        self.pass_s(1)
        self.assertEqual((len(self.heartbeats), self.timed_out), (1, []))
        self.pass_s(ANSWER_WITHIN_S / 2)
        self.assertEqual((len(self.heartbeats), self.timed_out), (1, []))

    def test_reads_what_came_in_while_the_process_stood_still_before_it_ends_a_connection(self) -> None:
        self.keepalive.request_sent()
        self.pass_s(ANSWER_WITHIN_S - 1)
        assert self.due is not None
        # The timer that runs is late, and the jump is too short for a sleep of the machine.
        _, then = self.due
        self.now_s += 2
        then()
        self.assertEqual(self.timed_out, [])


class ADrainingRelay(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.now_s = 1000.0
        clock = patch.object(reconnector, "time", Mock(monotonic=lambda: self.now_s))
        clock.start()
        self.addCleanup(clock.stop)
        self.connections: list[Any] = []
        self.events = Mock()
        self.reconnector = Reconnector(self.connect, self.events, Background())
        self.addAsyncCleanup(self.reconnector.stop)
        self.reconnector.start()

    def connect(self, _: object) -> Connection:
        async def close() -> None:
            self.connections[number].is_open = False

        number = len(self.connections)
        self.connections.append(Mock(is_open=True, close=close))
        return self.connections[-1]  # type: ignore[no-any-return]

    def drains(self, after_ms: float, lasted_s: float = 0) -> float:
        """The newest connection registers, lasts, and drains. Returns the seconds until the next attempt, which is now."""
        newest = self.connections[-1]
        self.reconnector.registered(newest)
        self.now_s += lasted_s
        loop = asyncio.get_running_loop()
        with patch.object(loop, "call_later", Mock(wraps=loop.call_later)) as later:
            self.reconnector.frame(newest, Notice("draining", {"reconnect_after_ms": after_ms}))
        wait_s, attempt = later.call_args.args
        attempt()
        return float(wait_s)

    async def test_has_few_retired_connections_read(self) -> None:
        for _ in range(10):
            self.drains(0)
        self.reconnector.registered(self.connections[-1])
        await asyncio.sleep(0)
        is_open = [connection.is_open for connection in self.connections]
        self.assertEqual(is_open, [False] * (10 - MAX_RETIRED) + [True] * (MAX_RETIRED + 1))

    async def test_is_asked_again_after_the_longer_of_its_wait_and_a_growing_one_of_bounded_length(self) -> None:
        with patch.object(reconnector, "backoff_s", lambda attempt: min(BACKOFF_CAP_S, float(attempt))):
            self.assertEqual([self.drains(0) for _ in range(7)], [0, 1, 2, 3, 4, 5, 5])
            self.assertGreaterEqual(self.drains(10_000), 10)
            self.assertLessEqual(self.drains(1e12), DRAINING_CAP_S * 1.5)

    async def test_is_left_at_once_however_many_attempts_came_before_a_connection_that_lasted(self) -> None:
        with patch.object(reconnector, "backoff_s", float):
            for _ in range(3):
                self.drains(0)
            turns = [(4.9, 3), (BACKOFF_CAP_S, 0), (0, 1), (0, 2)]
            self.assertEqual([self.drains(0, lasted_s) for lasted_s, _ in turns], [wait_s for _, wait_s in turns])

    async def test_that_closes_a_connection_as_that_is_given_up_leaves_the_newest_in_force(self) -> None:
        first = self.connections[0]
        for _ in range(MAX_RETIRED + 1):
            self.drains(0)
        self.reconnector.registered(self.connections[-1])
        self.reconnector.connection_ended(first, ConnectionEnd("lost", 1001, None, None))
        self.reconnector.check_registration()
        self.connections[-1].check_registration.assert_called_once()
        self.events.offline.assert_not_called()

    async def test_that_closes_a_connection_after_a_stop_is_told_to_nobody(self) -> None:
        self.reconnector.registered(self.connections[0])
        await self.reconnector.stop()
        self.reconnector.connection_ended(self.connections[0], ConnectionEnd("lost", 1001, None, None))
        self.events.offline.assert_not_called()

    async def test_holds_nobody_to_its_wait_who_has_lost_the_connection(self) -> None:
        first = self.connections[0]
        self.reconnector.registered(first)
        self.reconnector.frame(first, Notice("draining", {"reconnect_after_ms": 20_000}))
        loop = asyncio.get_running_loop()
        with patch.object(loop, "call_later", Mock(wraps=loop.call_later)) as later:
            self.reconnector.connection_ended(first, ConnectionEnd("lost", 1006, None, None))
        self.assertLessEqual(later.call_args.args[0], BACKOFF_CAP_S)
        later.call_args.args[1]()
        self.assertEqual(len(self.connections), 2)

    async def test_holds_who_lost_the_connection_to_what_refused_the_next_one(self) -> None:
        first = self.connections[0]
        self.drains(0)
        self.assertGreaterEqual(self.refuses(self.connections[1], 20), 20)
        loop = asyncio.get_running_loop()
        with patch.object(loop, "call_later", Mock(wraps=loop.call_later)) as later:
            self.reconnector.connection_ended(first, ConnectionEnd("lost", 1006, None, None))
        later.assert_not_called()

    async def test_is_left_alone_by_whom_it_refuses_for_a_minute_at_most(self) -> None:
        self.assertEqual(self.refuses(self.connections[0], 3600), RETRY_AFTER_CAP_S)

    def refuses(self, connection: Any, retry_after_s: int) -> float:
        """Returns the seconds until the next attempt."""
        cause = UpgradeRefused(503, Headers({"Retry-After": str(retry_after_s)}))
        loop = asyncio.get_running_loop()
        with patch.object(loop, "call_later", Mock(wraps=loop.call_later)) as later:
            self.reconnector.connection_ended(connection, ConnectionEnd("unreachable", 1006, None, cause))
        return float(later.call_args.args[0])
