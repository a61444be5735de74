"""A connector without a relay: what it is given, what it tells its agent and its log, and how it ends."""

import asyncio
import gc
import json
import logging
import socket
import sys
import traceback
import unittest
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any

from agent_relay_connector import Connector, RelayError, Trust
from agent_relay_connector.address import relay_address
from agent_relay_connector.bounded_queue import BoundedQueue
from agent_relay_connector.emitter import Emitter
from agent_relay_connector.options import trust_of

from .kit import GENEROUS_S, KEY, NOWHERE

# The TypeScript connector and `npm run keys` are held to the same.
ADDRESSES: dict[str, Any] = json.loads((Path(__file__).parent / "addresses.json").read_text("utf-8"))


class AnAddress(unittest.TestCase):
    def refusal(self, url: str) -> str:
        with self.assertRaises(ValueError, msg=url) as refused:
            relay_address(url)
        return str(refused.exception)

    def test_of_a_relay_or_of_its_websocket_leads_to_both(self) -> None:
        for url, websocket, base, host in (
            ("http://127.0.0.1:8080", "ws://127.0.0.1:8080/ws", "http://127.0.0.1:8080", "127.0.0.1:8080"),
            ("https://Relay.example:443/x/", "wss://relay.example/x/ws", "https://relay.example/x", "relay.example"),
            ("wss://relay.example", "wss://relay.example/ws", "https://relay.example", "relay.example"),
            ("ws://[::1]:81/relay", "ws://[::1]:81/relay", "http://[::1]:81", "[::1]:81"),
            ("ws://relay/agents/live", "ws://relay/agents/live", "http://relay", "relay"),
            ("ws://relay/prefix/ws", "ws://relay/prefix/ws", "http://relay/prefix", "relay"),
        ):
            address = relay_address(url)
            self.assertEqual((address.websocket, address.base, address.host), (websocket, base, host))
        elsewhere = relay_address("ws://relay:8082/ws", "https://relay/x/")
        self.assertEqual((elsewhere.websocket, elsewhere.base), ("ws://relay:8082/ws", "https://relay/x"))

    def test_has_the_host_that_the_relay_reads_in_it_however_it_is_spelled(self) -> None:
        for url, host in ADDRESSES["hosts"].items():
            self.assertEqual(relay_address(url).host, host, url)

    def test_has_the_path_that_node_reads_in_it(self) -> None:
        for url, websocket in ADDRESSES["paths"].items():
            self.assertEqual(relay_address(url).websocket, websocket, url)

    def test_that_is_refused_says_what_to_write_and_not_what_was_given(self) -> None:
        for told, urls in ADDRESSES["refused"].items():
            for url in urls:
                self.assertEqual(self.refusal(url), f"url: {told}", url)

    def test_with_a_password_is_in_no_part_of_the_error(self) -> None:
        users = ("user:secret", "user:/secret", "user:1/secret", "user:1?secret", "user:1#secret", "user:\\secret")
        urls = [f"http://{user}@relay.example" for user in users]
        for url in (*urls, "http://relay.example?x=secret", "http://secret@℀.example"):
            with self.assertRaises(ValueError) as refused:
                relay_address("http://relay.example", url)
            told = "".join(traceback.format_exception(refused.exception))
            self.assertIn("http_url: ", told)
            self.assertNotIn("secret", told)


class AConnector(unittest.IsolatedAsyncioTestCase):
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

    def test_pins_what_it_is_given_in_place_of_the_key_files(self) -> None:
        trust = trust_of(Trust(issuers=[{"issuer": "a", "n": 2}]), [{"issuer": "a", "n": 1}, {"issuer": "b"}])
        self.assertEqual(list(trust.issuers), [{"issuer": "a", "n": 2}, {"issuer": "b"}])


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


class AnEmitter(unittest.TestCase):
    def test_logs_what_a_listener_raised_that_nobody_listens_for_with_its_traceback(self) -> None:
        emitter = Emitter()

        def listener(_: object) -> None:
            raise LookupError("mine")

        emitter.on("delivery", listener)
        with self.assertLogs("agent_relay_connector") as logs:
            emitter.emit("delivery", None)
        self.assertIn("LookupError: mine", logs.output[0])

    def test_calls_every_listener_though_one_raises_whatever_it_is(self) -> None:
        for raised in (LookupError(), asyncio.CancelledError()):
            emitter = Emitter()
            heard: list[object] = []

            def listener(_: object, raised: BaseException = raised) -> None:
                raise raised

            emitter.on("delivery", listener)
            emitter.on("delivery", heard.append)
            emitter.on("error", lambda error: heard.append(error.__cause__))
            emitter.emit("delivery", 1)
            self.assertEqual(heard, [raised, 1])

    def test_logs_a_cause_once_until_the_agent_was_registered_and_no_more_than_a_hundred(self) -> None:
        emitter = Emitter()

        def logged(*messages: str) -> int:
            with self.assertLogs("agent_relay_connector") as logs:
                logging.getLogger("agent_relay_connector").warning("the first")
                for message in messages:
                    emitter.emit("error", RelayError("unreachable", message))
            return len(logs.output) - 1

        self.assertEqual(logged("connection refused", "unknown host", "connection refused"), 2)
        emitter.log_anew()
        self.assertEqual(logged("connection refused"), 1)
        self.assertEqual(logged(*map(str, range(200))), 99)

    def test_logs_no_cause_of_anything_else(self) -> None:
        error = RelayError("unreachable")
        error.__cause__ = LookupError("what another one sent")
        with self.assertLogs("agent_relay_connector") as logs:
            Emitter().emit("error", error)
        self.assertNotIn("LookupError", logs.output[0])


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
