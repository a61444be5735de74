"""Connections one after the other, at a relay that drains."""

import asyncio
import unittest
from typing import Any
from unittest.mock import Mock, patch

from agent_relay_connector import reconnector
from agent_relay_connector.background import Background
from agent_relay_connector.connection import Connection, ConnectionEnd
from agent_relay_connector.limits import BACKOFF_CAP_S, DRAINING_CAP_S, MAX_RETIRED
from agent_relay_connector.reconnector import Reconnector
from agent_relay_connector.types import Notice


class ADrainingRelay(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.connections: list[Any] = []
        self.reconnector = Reconnector(self.connect, Mock(), Background())
        self.addAsyncCleanup(self.reconnector.stop)
        self.reconnector.start()

    def connect(self, _: object) -> Connection:
        async def close() -> None:
            self.connections[number].is_open = False

        number = len(self.connections)
        self.connections.append(Mock(is_open=True, close=close))
        return self.connections[-1]  # type: ignore[no-any-return]

    def drains(self, after_ms: float) -> float:
        """The newest connection registers, and drains. Returns the seconds until the next attempt, which is now."""
        newest = self.connections[-1]
        self.reconnector.registered(newest)
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
            # The newest has lasted.
            self.reconnector._online_at = float("-inf")
            self.assertEqual(self.drains(0), 0)

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
