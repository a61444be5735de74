"""Connections one after the other, at a relay that drains."""

import asyncio
import unittest
from typing import Any
from unittest.mock import Mock, patch

from websockets.datastructures import Headers

from agent_relay_connector import reconnector
from agent_relay_connector.background import Background
from agent_relay_connector.connection import Connection, ConnectionEnd
from agent_relay_connector.limits import BACKOFF_CAP_S, DRAINING_CAP_S, MAX_RETIRED, RETRY_AFTER_CAP_S
from agent_relay_connector.network_errors import UpgradeRefused
from agent_relay_connector.reconnector import Reconnector
from agent_relay_connector.types import Notice


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
