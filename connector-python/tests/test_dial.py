"""Names that have several addresses, and names that nobody resolves."""

import asyncio
import socket
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any
from unittest.mock import patch

from agent_relay_connector import dial as module
from agent_relay_connector.dial import dial

from .kit import GENEROUS_S

PACKAGE = Path(__file__).parent.parent / "src"
# An agent whose name server does not answer.
UNRESOLVED = """
import asyncio, socket, threading
from agent_relay_connector import Connector, RelayError
from agent_relay_connector.http import HttpClient

socket.getaddrinfo = lambda *_, **__: threading.Event().wait()

async def main():
    key = {"key_id": "a-1", "alg": "ed25519", "private_key": "A" * 43}
    connector = Connector("https://relay.example", agent="agent://a", key=key, take_over=True)
    try:
        await connector.start(timeout=0.1)
    except RelayError as error:
        print(error.code)
    try:
        await HttpClient({}).get("https://relay.example", 0.1)
    except asyncio.TimeoutError:
        print("TimeoutError")

asyncio.run(main())
"""


class TheAddressesOfAName(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.tried: list[str] = []
        # Of each address: a connection, why there is none, or nothing while it is silent.
        self.answers: dict[str, Any] = {}
        self.is_given_up: set[str] = set()
        attempts = patch.object(module, "_connected", self.connected)
        attempts.start()
        self.addCleanup(attempts.stop)
        soon = patch.object(module, "NEXT_ADDRESS_S", 0.01)
        soon.start()
        self.addCleanup(soon.stop)

    async def connected(self, found: Any) -> Any:
        address = found[4]
        self.tried.append(address)
        answer = self.answers[address]
        if isinstance(answer, OSError):
            raise answer
        if answer is not None:
            return answer
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.is_given_up.add(address)
            raise

    async def dialled(self, *addresses: str) -> Any:
        families = {"4": socket.AF_INET, "6": socket.AF_INET6}
        found = [(families[address[0]], socket.SOCK_STREAM, 0, "", address) for address in addresses]
        with patch.object(socket, "getaddrinfo", return_value=found):
            return await asyncio.wait_for(dial("relay.example", 443), GENEROUS_S)

    async def test_are_tried_side_by_side_while_one_is_silent(self) -> None:
        connection = object()
        self.answers = {"6a": None, "6b": None, "4a": connection}
        self.assertIs(await self.dialled("6a", "6b", "4a"), connection)
        await asyncio.sleep(0)
        self.assertEqual((self.tried, self.is_given_up), (["6a", "4a"], {"6a"}))

    async def test_are_tried_at_once_after_one_that_refuses(self) -> None:
        connection = object()
        self.answers = {"4a": ConnectionRefusedError("a"), "4b": connection}
        with patch.object(module, "NEXT_ADDRESS_S", 1000):
            self.assertIs(await self.dialled("4a", "4b"), connection)

    async def test_are_told_by_the_failure_of_the_first_where_none_connects(self) -> None:
        self.answers = {"6a": ConnectionRefusedError("a"), "4a": OSError("b")}
        with self.assertRaises(ConnectionRefusedError):
            await self.dialled("6a", "4a")

    async def test_leave_one_connection_where_several_connect(self) -> None:
        connections = [socket.socket() for _ in range(2)]
        is_first_asked = asyncio.Event()

        async def connected(found: Any) -> socket.socket:
            if found[4] == "4a":
                await is_first_asked.wait()
                return connections[0]
            is_first_asked.set()
            return connections[1]

        with patch.object(module, "_connected", connected):
            chosen = await self.dialled("4a", "4b")
        await asyncio.sleep(0)
        self.addCleanup(chosen.close)
        for connection in connections:
            self.assertEqual(connection.fileno() == -1, connection is not chosen)


class AProgramWhoseNameServerIsSilent(unittest.TestCase):
    def test_ends_all_the_same(self) -> None:
        program = [sys.executable, "-c", UNRESOLVED]
        environment = {"PYTHONPATH": str(PACKAGE)}
        ended = subprocess.run(program, capture_output=True, text=True, timeout=GENEROUS_S, env=environment)
        self.assertEqual((ended.stdout.split(), ended.returncode), (["timeout", "TimeoutError"], 0), ended.stderr)
