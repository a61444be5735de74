"""A connector without a relay: what it is given, and what it says of it."""

import asyncio
import gc
import socket
import sys
import unittest
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from agent_relay_connector import Connector, RelayError, Trust
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.given import AgentKey
from agent_relay_connector.options import trust_of

from .times import GENEROUS_S

SEED = encode_base64url(bytes(range(32)))
# Nothing listens there.
NOWHERE = "http://127.0.0.1:1"
KEY: AgentKey = {"key_id": "a-1", "alg": "ed25519", "private_key": SEED}


class AConnector(unittest.IsolatedAsyncioTestCase):
    def test_that_can_never_work_is_not_made(self) -> None:
        key: Any = {"key_id": "a-1", "alg": "ed25519", "private_key": SEED}
        hmac: Any = {"key_id": "a-1", "alg": "hmac-sha256", "secret": SEED}
        refused: list[dict[str, Any]] = [
            {},
            {"agent": "agent://A", "key": key},
            {"agent": "agent://a", "key": {**key, "key_id": "a-1"}, "url": "x"},
            {"agent": "agent://a", "key": {"alg": "ed25519", "private_key": SEED}},
            {"agent": "agent://a", "key": hmac, "seal": "required"},
            {"agent": "agent://a", "key": key, "max_delivery_age": -1},
            {"agent": "agent://a", "key": key, "max_delivery_age": float("nan")},
        ]
        for options in refused:
            with self.assertRaises(ValueError):
                given: dict[str, Any] = {"url": NOWHERE, **options}
                Connector(**given)
        with self.assertRaises(RelayError):
            Connector(NOWHERE, agent="agent://a", key={"key_id": "a-1", "alg": "ed25519", "private_key": "x"})

    async def test_closes_before_it_was_started_and_twice(self) -> None:
        connector = Connector(NOWHERE, agent="agent://a", key=KEY)
        await connector.close()
        await connector.close()
        with self.assertRaises(RelayError) as raised:
            await connector.send("agent://b", {})
        self.assertEqual(raised.exception.code, "closed")
        self.assertEqual([delivery async for delivery in connector], [])

    async def test_that_cannot_connect_tries_again_and_says_why(self) -> None:
        connector = Connector(NOWHERE, agent="agent://a", key=KEY)
        causes: asyncio.Queue[Exception | None] = asyncio.Queue()
        connector.on("state", lambda state: causes.put_nowait(state.cause) if state.status == "reconnecting" else None)
        with self.assertLogs("agent_relay_connector", "WARNING") as logs:
            starting = asyncio.create_task(connector.start())
            for _ in range(2):
                self.assertIsInstance(await asyncio.wait_for(causes.get(), GENEROUS_S), OSError)
            starting.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await starting
        self.assertEqual(connector.state.status, "closed")
        # Of all attempts once: the cause, and that another one follows.
        self.assertEqual(len(logs.output), 2)
        self.assertRegex(logs.output[1], "again in [0-9.]+ s")

    def test_pins_no_issuer_that_is_no_record_of_one(self) -> None:
        records: list[Any] = ["acme", 7, None, {}]
        for record in records:
            with self.assertRaises(RelayError) as raised:
                Connector(NOWHERE, agent="agent://a", key=KEY, trust=Trust(issuers=[record]))
            self.assertEqual(raised.exception.code, "invalid_issuer", record)

    def test_pins_what_it_is_given_in_place_of_the_key_files(self) -> None:
        trust = trust_of(Trust(issuers=[{"issuer": "a", "n": 2}]), [{"issuer": "a", "n": 1}, {"issuer": "b"}])
        self.assertEqual(list(trust.issuers), [{"issuer": "a", "n": 2}, {"issuer": "b"}])


class APayload(unittest.TestCase):
    def test_that_is_no_object_is_refused_at_once_and_told_what_one_looks_like(self) -> None:
        async def send(seal: bool) -> None:
            connector = Connector(NOWHERE, agent="agent://a", key=KEY)
            await connector.send("agent://b", "hi", seal=seal)  # type: ignore[arg-type]

        for seal in (False, True):
            with self.assertRaises(RelayError) as refused:
                asyncio.run(send(seal))
            self.assertEqual(refused.exception.code, "invalid_envelope")
            self.assertIn('{"message"', refused.exception.message)


class AnotherEventLoop(unittest.TestCase):
    def test_is_refused_at_once(self) -> None:
        connector = Connector(NOWHERE, agent="agent://a", key=KEY)
        connector.on("error", lambda _: None)

        async def begin() -> None:
            with self.assertRaises(RelayError):
                await connector.start(timeout=0)

        async def go_on() -> None:
            calls: list[Callable[[], Awaitable[object]]] = [
                connector.start,
                connector.close,
                lambda: connector.send("agent://b", {}),
            ]
            for call in calls:
                with self.assertRaisesRegex(RuntimeError, "event loop"):
                    await call()

        asyncio.run(begin())
        asyncio.run(go_on())


class AProgramThatEnds(unittest.TestCase):
    def leaves_nothing(self, main: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """main: raises SystemExit."""
        left: list[Any] = []

        async def watched() -> None:
            asyncio.get_running_loop().set_exception_handler(lambda _, context: left.append(context))
            await main()

        with self.assertNoLogs("agent_relay_connector"), self.assertRaises(SystemExit):
            asyncio.run(watched())
        gc.collect()
        self.assertEqual(left, [])

    def test_while_its_connector_waits_for_an_upgrade_leaves_no_task(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.setblocking(False)
            connector = Connector(f"http://127.0.0.1:{silent.getsockname()[1]}", agent="agent://a", key=KEY)

            async def main() -> None:
                starting = asyncio.create_task(connector.start())
                loop = asyncio.get_running_loop()
                connection, _ = await loop.sock_accept(silent)
                self.addCleanup(connection.close)
                await loop.sock_recv(connection, 1)
                sys.exit(starting.done())

            self.leaves_nothing(main)

    def test_while_its_credential_is_asked_for_does_not_blame_the_callback(self) -> None:
        async def main() -> None:
            asked = asyncio.Event()

            async def credential() -> str:
                asked.set()
                await asyncio.Event().wait()
                return ""

            connector = Connector(NOWHERE, agent="agent://a", key=KEY, credential=credential)
            starting = asyncio.create_task(connector.start())
            await asked.wait()
            sys.exit(starting.done())

        self.leaves_nothing(main)

    def test_in_a_listener_does_not_log_it_as_a_failure(self) -> None:
        async def main() -> None:
            connector = Connector(NOWHERE, agent="agent://a", key=KEY)
            connector.on("state", lambda state: sys.exit() if state.status == "connecting" else None)
            await connector.start()

        self.leaves_nothing(main)
