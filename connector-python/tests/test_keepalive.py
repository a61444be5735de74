"""Heartbeats and their answers, by clocks that the test moves."""

import unittest
from collections.abc import Callable
from types import SimpleNamespace
from unittest.mock import Mock, patch

from agent_relay_connector import keepalive
from agent_relay_connector.keepalive import Keepalive
from agent_relay_connector.limits import ANSWER_WITHIN_S

INTERVAL_S = 15.0


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
