"""Proxies that the environment names, on the way to a relay."""

import asyncio
import json
import logging
import os
import socket
import ssl
import tempfile
import threading
import traceback
import unittest
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from agent_relay_connector import Connector, ConnectorState, RelayError, connection, tunnel
from agent_relay_connector.limits import HELLO_WITHIN_S, LOOK_UPS_AT_ONCE, MAX_PROXY_ANSWER_BYTES
from agent_relay_connector.network_errors import unreachable
from agent_relay_connector.proxy import ProxyError, proxy_of

from .kit import GENEROUS_S, KEY, NOWHERE, later, serve, tls_of

TABLE: dict[str, Any] = json.loads(Path(__file__).with_name("proxies.json").read_text())
# Percent-decoded: u:p@ss w.
SECRET = "u:p%40ss%20w"
BASIC = "Proxy-Authorization: Basic dTpwQHNzIHc="
YES = b"HTTP/1.1 200 Connection established\r\nvia: a\r\n\r\n"
# What exceeds the bound of an answer.
ENDLESS = (
    ("HTTP/1.1 403 No\r\nx: ".ljust(MAX_PROXY_ANSWER_BYTES + 1), "answered with 403", "fix"),
    ("HTTP/1.1 200 OK\r\nx: ".ljust(MAX_PROXY_ANSWER_BYTES + 1), "does not speak HTTP", "fix"),
    ("HTTP/1.1 100 Continue\r\n\r\n" * (MAX_PROXY_ANSWER_BYTES // 20), "does not speak HTTP", "fix"),
)


class TheEnvironment(unittest.TestCase):
    def place(self, url: str, environment: dict[str, str]) -> str | None:
        proxy = proxy_of(url, environment)
        return None if proxy is None else proxy.place

    def test_names_the_proxy_of_each_scheme(self) -> None:
        for url, environment, place in TABLE["named"]:
            self.assertEqual(self.place(url, environment), place, (url, environment))

    def test_excepts_hosts_addresses_and_ranges_and_always_this_machine(self) -> None:
        for rows, place in ((TABLE["goesWithout"], None), (TABLE["goesThrough"], "proxy.example:3128")):
            for url, exceptions in rows:
                for names in (("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"), ("https_proxy", "http_proxy", "no_proxy")):
                    environment = dict(zip(names, ("http://proxy.example:3128",) * 2 + (exceptions,)))
                    self.assertEqual(self.place(url, environment), place, (url, exceptions))

    def test_excepts_by_the_lower_case_name_where_both_are_set(self) -> None:
        environment = {"HTTPS_PROXY": "p", "no_proxy": "relay.example", "NO_PROXY": "other.example"}
        self.assertIsNone(self.place("https://relay.example", environment))

    def test_that_names_no_usable_proxy_is_an_error_that_says_what_to_write(self) -> None:
        for value in (*TABLE["refused"], f"socks5://{SECRET}@proxy.example", f"http://{SECRET}@pro xy.example"):
            for name in ("HTTPS_PROXY", "https_proxy"):
                with self.assertRaises(ProxyError, msg=value) as caught:
                    proxy_of("wss://relay.example/ws", {name: value})
                error = unreachable("wss://relay.example/ws", caught.exception)
                why = f"{name} names no proxy that can be used"
                self.assertEqual(error.message, f"The relay at https://relay.example/ws is not reachable: {why}.")
                self.assertEqual(
                    (error.hint, error.retry),
                    (
                        "Write http://host:port, or http://user:password@host:port. SOCKS and proxies over TLS are not "
                        "supported. NO_PROXY=relay.example goes without a proxy.",
                        "fix",
                    ),
                )
                self.assertNotIn("p%40", shown(error))
                self.assertIsNone(proxy_of("wss://relay.example/ws", {name: value, "NO_PROXY": "relay.example"}))

    def test_has_a_user_and_a_password_that_nobody_sees(self) -> None:
        proxy = proxy_of("https://relay.example", {"HTTPS_PROXY": f"http://{SECRET}@proxy.example"})
        assert proxy is not None
        self.assertEqual(f"Proxy-Authorization: {proxy.authorization}", BASIC)
        self.assertNotIn("Basic", repr(proxy))
        for value in ("http://u@p", "http://u:@p"):
            proxy = proxy_of("https://relay.example", {"HTTPS_PROXY": value})
            self.assertEqual(proxy and proxy.authorization, "Basic dTo=")


class AProxy:
    """Leads names that nobody resolves to ports of this machine."""

    def __init__(self, ports: dict[str, int]) -> None:
        self.ports = ports
        # In place of a connection: what it says, and whether it ends then.
        self.answer: bytes | None = None
        self.ends = True
        # Heads of requests.
        self.heads: list[str] = []
        self.was_asked = asyncio.Event()
        # More than a request came.
        self.was_used = asyncio.Event()
        self.serving: set[asyncio.Task[Any]] = set()

    async def start(self) -> "AProxy":
        self.server = await asyncio.start_server(self.serve, "127.0.0.1")
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def stop(self) -> None:
        self.server.close()
        for task in self.serving:
            task.cancel()
        await self.until_left()
        await self.server.wait_closed()

    async def until_left(self) -> None:
        if self.serving:
            await asyncio.wait(self.serving)

    @property
    def places(self) -> list[str]:
        return [head.split(" ")[1] for head in self.heads]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = cast("asyncio.Task[Any]", asyncio.current_task())
        self.serving.add(task)
        task.add_done_callback(self.serving.discard)
        try:
            self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            self.was_asked.set()
            if self.answer is None:
                await self.connect(reader, writer)
                return
            writer.write(self.answer)
            await writer.drain()
            if not self.ends and await reader.read(1):
                self.was_used.set()
                await reader.read()
        except (OSError, EOFError):
            pass
        finally:
            writer.close()

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.ports[self.places[-1]])
        writer.write(YES)
        await asyncio.gather(copy(reader, inner_writer), copy(inner_reader, writer))


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


class ARelay:
    """Its websocket, and its HTTP side, on two ports."""

    def __init__(self) -> None:
        # To whatever is asked over HTTP.
        self.http_answer = PRESENCE

    async def start(self, context: ssl.SSLContext | None) -> "ARelay":
        self.websocket = await serve(self.greet, "127.0.0.1", 0, ssl=context)
        self.http = await asyncio.start_server(self.answer, "127.0.0.1", ssl=context)
        return self

    async def stop(self) -> None:
        self.websocket.close()
        self.http.close()
        await self.websocket.wait_closed()
        await self.http.wait_closed()

    def ports(self, port: int) -> dict[str, int]:
        places = (("relay.example", self.websocket), ("http.example", self.http))
        return {f"{host}:{port}": next(iter(server.sockets)).getsockname()[1] for host, server in places}

    async def greet(self, websocket: Any, *_: str) -> None:
        await websocket.send('{"frame":"hello"}')
        async for text in websocket:
            envelope = json.loads(text)
            ack = {"frame": "ack", "envelope_id": envelope["id"], "type": envelope["type"], "accepted": True}
            await websocket.send(json.dumps(ack))

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(self.http_answer)
        writer.close()


PRESENCE = b'HTTP/1.1 200 OK\r\ncontent-length: 20\r\n\r\n{"status":"offline"}'


class Proxied(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.proxy = await AProxy({}).start()
        self.addAsyncCleanup(self.proxy.stop)
        self.name_proxy(HTTPS_PROXY=f"http://{SECRET}@127.0.0.1:{self.proxy.port}")

    def name_proxy(self, **variables: str) -> None:
        """In an environment that names no other."""
        others = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
        patched = patch.dict(os.environ, {**others, **variables}, clear=True)
        patched.start()
        self.addCleanup(patched.stop)

    def connector(self, scheme: str = "https", **options: Any) -> Connector:
        made = Connector(
            f"{scheme.replace('http', 'ws')}://relay.example",
            http_url=f"{scheme}://http.example",
            agent="agent://a",
            key=KEY,
            **options,
        )
        self.addAsyncCleanup(made.close)
        return made

    async def failure_of_look_up(self, connector: Connector, timeout: float = GENEROUS_S) -> RelayError:
        with self.assertRaises(RelayError) as caught:
            await connector.check_online("agent://b", timeout=timeout)
        return caught.exception

    async def failure_of_attempt(self, connector: Connector) -> RelayError:
        """The first error of a start, which it ends with where no further attempt can help."""
        told: asyncio.Queue[RelayError] = asyncio.Queue()
        connector.on("error", told.put_nowait)
        starting = asyncio.create_task(connector.start())
        error = await asyncio.wait_for(told.get(), GENEROUS_S)
        if error.retry == "later":
            await connector.close()
        with self.assertRaises(RelayError) as caught:
            await asyncio.wait_for(starting, GENEROUS_S)
        self.assertEqual(caught.exception.code, "closed" if error.retry == "later" else "unreachable")
        return error

    async def tells(self, what: str, hint: str, retry: str, variable: str = "HTTPS_PROXY") -> None:
        """Of a look-up, and of an attempt to connect."""
        why = f"the proxy http://127.0.0.1:{self.proxy.port} of {variable} {what}"
        of_look_up = await self.failure_of_look_up(self.connector())
        of_attempt = await self.failure_of_attempt(self.connector())
        for error, place in ((of_look_up, "http.example"), (of_attempt, "relay.example")):
            path = "/ws" if error is of_attempt else ""
            self.assertEqual(error.message, f"The relay at https://{place}{path} is not reachable: {why}.")
            self.assertEqual((error.code, error.hint, error.retry), ("unreachable", hint.format(place), retry))
            for secret in ("p@ss", "p%40ss", BASIC[-8:]):
                self.assertNotIn(secret, shown(error))


CORRECT = "Start the proxy, correct HTTPS_PROXY, or name {0} in NO_PROXY."


class AConnector(Proxied):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    async def relay_at(self, port: int, context: ssl.SSLContext | None) -> ARelay:
        relay = await ARelay().start(context)
        self.addAsyncCleanup(relay.stop)
        self.proxy.ports = relay.ports(port)
        return relay

    async def registers_and_looks_up(self, scheme: str, port: int) -> None:
        connector = self.connector(scheme)
        await asyncio.wait_for(connector.start(), GENEROUS_S)
        self.assertEqual(self.proxy.places, [f"relay.example:{port}", f"http.example:{port}"])
        presence = await connector.check_online("agent://b", timeout=GENEROUS_S)
        self.assertEqual((presence.status, self.proxy.places[2:]), ("offline", [f"http.example:{port}"]))
        for head in self.proxy.heads:
            lines = head.split("\r\n")
            self.assertEqual(lines[1:], [f"Host: {lines[0].split(' ')[1]}", BASIC, "", ""])
        await connector.close()

    async def test_reaches_a_relay_over_tls_through_a_proxy_with_its_websocket_and_over_http(self) -> None:
        await self.relay_at(443, tls_of("relay.example", "http.example", folder=self.folder.name))
        with patch.dict(os.environ, SSL_CERT_FILE=f"{self.folder.name}/certificate.pem"):
            await self.registers_and_looks_up("https", 443)

    async def test_reaches_a_relay_without_tls_through_a_proxy_in_the_same_way(self) -> None:
        await self.relay_at(80, None)
        self.name_proxy(http_proxy=f"{SECRET}@127.0.0.1:{self.proxy.port}/")
        await self.registers_and_looks_up("http", 80)

    async def test_trusts_no_other_certificate_behind_a_proxy(self) -> None:
        await self.relay_at(443, tls_of("other.example", folder=self.folder.name))
        with patch.dict(os.environ, SSL_CERT_FILE=f"{self.folder.name}/certificate.pem"):
            # The relay's own.
            with self.assertLogs("asyncio"):
                errors = [await self.failure_of_look_up(self.connector())]
                errors.append(await self.failure_of_attempt(self.connector()))
                await self.proxy.until_left()
        for error in errors:
            self.assertIn("its certificate is for another host", error.message)

    async def test_tells_what_a_relay_answers_behind_a_proxy_as_the_relays(self) -> None:
        relay = await self.relay_at(443, tls_of("http.example", folder=self.folder.name))
        relay.http_answer = b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n"
        connector = Connector("wss://http.example", agent="agent://a", key=KEY)
        self.addAsyncCleanup(connector.close)
        told: asyncio.Queue[RelayError] = asyncio.Queue()
        connector.on("error", told.put_nowait)
        with patch.dict(os.environ, SSL_CERT_FILE=f"{self.folder.name}/certificate.pem"):
            starting = asyncio.create_task(connector.start())
            error = await asyncio.wait_for(told.get(), GENEROUS_S)
        await connector.close()
        await asyncio.gather(starting, return_exceptions=True)
        self.assertIn("the upgrade to a websocket was answered with 407", error.message)
        await asyncio.wait_for(self.proxy.until_left(), GENEROUS_S)

    async def test_takes_what_follows_the_answer_of_a_proxy_as_the_relays(self) -> None:
        self.name_proxy(HTTP_PROXY=f"127.0.0.1:{self.proxy.port}")
        interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\n\n"
        self.proxy.answer, self.proxy.ends = interim + YES + PRESENCE, False
        presence = await self.connector("http").check_online("agent://b", timeout=GENEROUS_S)
        self.assertEqual(presence.status, "offline")

    async def test_that_is_told_so_goes_without_the_proxy_of_the_environment(self) -> None:
        with patch.object(socket, "getaddrinfo", side_effect=socket.gaierror(socket.EAI_NONAME, "x")):
            of_look_up = await self.failure_of_look_up(self.connector(proxy=False))
            of_attempt = await self.failure_of_attempt(self.connector(proxy=False))
        for error, place in ((of_look_up, "http.example"), (of_attempt, "relay.example/ws")):
            self.assertEqual(error.message, f"The relay at https://{place} is not reachable: unknown host.")
        self.assertEqual(self.proxy.heads, [])

    async def test_takes_no_proxy_but_that_of_the_environment(self) -> None:
        with self.assertRaises(ValueError) as caught:
            self.connector(proxy=f"http://{SECRET}@127.0.0.1:1")
        self.assertNotIn("p%40ss", str(caught.exception))

    async def test_reads_the_environment_at_each_attempt(self) -> None:
        connector = self.connector()
        self.name_proxy(HTTPS_PROXY="socks5://127.0.0.1")
        self.assertIn("names no proxy", (await self.failure_of_look_up(connector)).message)
        self.name_proxy(HTTPS_PROXY=f"http://127.0.0.1:{self.proxy.port}")
        self.proxy.answer = b"HTTP/1.1 403 No\r\n\r\n"
        self.assertIn("answered with 403", (await self.failure_of_look_up(connector)).message)

    async def test_tells_why_a_relay_does_not_answer_a_look_up_without_a_proxy_in_the_same_words(self) -> None:
        self.name_proxy()
        connector = Connector(NOWHERE, agent="agent://a", key=KEY)
        self.addAsyncCleanup(connector.close)
        error = await self.failure_of_look_up(connector)
        self.assertEqual(error.message, f"The relay at {NOWHERE} is not reachable: connection refused.")
        self.assertIsInstance(error.__cause__, ConnectionRefusedError)


class AProxyThatDoesNotConnect(Proxied):
    async def test_and_wants_a_password_is_told_as_that_and_ends_a_start_at_once(self) -> None:
        encode = "Percent-encode what is no letter or digit in them."
        refused = f"It does not take the user and the password of HTTPS_PROXY. {encode}"
        missing = "It wants a user and a password: https_proxy=http://user:password@host:port."
        self.proxy.answer = b"HTTP/1.0 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n"
        await self.tells("answered with 407", refused, "fix")
        self.assertEqual(self.proxy.places, ["http.example:443", "relay.example:443"])
        self.name_proxy(https_proxy=f"http://127.0.0.1:{self.proxy.port}")
        await self.tells("answered with 407", missing, "fix", "https_proxy")
        self.assertNotIn("Authorization", self.proxy.heads[-1])

    async def test_but_shows_a_page_in_the_place_of_the_relay_is_told_as_that(self) -> None:
        self.proxy.answer, self.proxy.ends = YES + b"HTTP/1.1 200 OK\r\n\r\n<html>Log in</html>", False
        hint = (
            "It may show a page of its own in place of {0}:443, such as a login: ask who runs it, or name {0} in NO_PROXY. "
            "If the relay's port speaks plain http, use http:// (or ws://)."
        )
        await self.tells("leads to something that does not speak TLS", hint, "fix")
        self.proxy.answer = YES + b"<!doctype html>\r\n"
        self.name_proxy(HTTP_PROXY=f"http://127.0.0.1:{self.proxy.port}")
        of_look_up = await self.failure_of_look_up(self.connector("http"))
        of_attempt = await self.failure_of_attempt(self.connector("http"))
        for error in (of_look_up, of_attempt):
            self.assertIn("of HTTP_PROXY leads to something that does not speak HTTP.", error.message)

    async def test_for_good_is_told_with_its_status(self) -> None:
        for status in (302, 403, 404):
            self.proxy.answer = f"HTTP/1.1 {status}\r\n\r\n".encode()
            await self.tells(
                f"answered with {status}",
                "It does not connect to {0}:443: ask who runs it, or name {0} in NO_PROXY.",
                "fix",
            )

    async def test_for_the_moment_is_asked_again(self) -> None:
        for status in (408, 425, 429, 500, 502, 503, 504):
            self.proxy.answer = f"HTTP/1.1 {status} No\r\n\r\n".encode()
            hint = "It does not reach the relay at the moment: try again later."
            await self.tells(f"answered with {status}", hint, "later")

    async def test_is_told_as_what_it_says_though_it_says_nothing_more(self) -> None:
        self.proxy.ends = False
        for says, what, retry in (*TABLE["answers"], *ENDLESS):
            self.proxy.answer = says.encode("latin-1")
            with patch.object(tunnel, "PROXY_HEADERS_WITHIN_S", 0):
                error = await self.failure_of_look_up(self.connector())
            self.assertIn(f"of HTTPS_PROXY {what}.", error.message, says)
            self.assertEqual(error.retry, retry, says)

    async def test_is_told_with_its_status_though_it_ends_the_connection_within_its_headers(self) -> None:
        self.proxy.answer = b"HTTP/1.1 403 No\r\nx"
        hint = "It does not connect to {0}:443: ask who runs it, or name {0} in NO_PROXY."
        await self.tells("answered with 403", hint, "fix")

    async def test_is_left_alone_for_as_long_as_it_asks_and_for_a_minute_at_most(self) -> None:
        for header, wait_s, hint in (
            ("", None, "try again later"),
            ("via: a\nretry-after:3600\n", 60, "try again in 60 s"),
            ("Retry-After: \t7 \r\n", 7, "try again in 7 s"),
        ):
            self.proxy.answer = f"HTTP/1.1 503 No\r\n{header}\r\n".encode()
            of_look_up = await self.failure_of_look_up(self.connector())
            of_attempt = await self.failure_of_attempt(self.connector())
            for error in (of_look_up, of_attempt):
                self.assertEqual(error.retry_after, wait_s)
                self.assertIn(hint, error.hint)
        states: list[ConnectorState] = []
        connector = self.connector()
        connector.on("state", states.append)
        await self.failure_of_attempt(connector)
        self.assertGreaterEqual(max(state.retry_in or 0 for state in states), 7)

    async def test_and_ends_the_connection_is_told_as_that(self) -> None:
        for start in (b"", b"HTT", b"HTTP/1.1 200 OK\r\nvia: a\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"):
            self.proxy.answer = start
            await self.tells("ended the connection", CORRECT, "later")

    async def test_and_speaks_no_http_is_told_as_that_without_waiting_for_more(self) -> None:
        self.proxy.answer, self.proxy.ends = b"SSH-2.0", False
        await self.tells("does not speak HTTP", CORRECT, "fix")

    async def test_and_cannot_be_reached_is_told_with_the_reason(self) -> None:
        port = self.proxy.port
        self.proxy.port = 1
        self.name_proxy(https_proxy=f"http://{SECRET}@127.0.0.1:1")
        hint = CORRECT.replace("HTTPS", "https").replace("_PROXY,", "_proxy,")
        await self.tells("is not reachable: connection refused", hint, "later", "https_proxy")
        self.proxy.port = port

    async def test_because_its_name_is_unknown_is_told_as_that(self) -> None:
        for name, failure in (("proxy.invalid", socket.gaierror(socket.EAI_NONAME, "x")), ("a..b", UnicodeError("x"))):
            self.name_proxy(HTTPS_PROXY=f"http://{SECRET}@{name}")
            with patch.object(socket, "getaddrinfo", side_effect=failure):
                error = await self.failure_of_look_up(self.connector())
            self.assertIn(f"the proxy http://{name}:80 of HTTPS_PROXY is not reachable: unknown host.", error.message)

    async def test_leaves_its_turn_to_the_next_look_up(self) -> None:
        self.proxy.answer = b"HTTP/1.1 403 No\r\n\r\n"
        connector = self.connector()
        for _ in range(LOOK_UPS_AT_ONCE + 1):
            self.assertIn("answered with 403", (await self.failure_of_look_up(connector)).message)

    async def test_and_says_nothing_takes_no_longer_than_a_relay_may(self) -> None:
        self.proxy.answer, self.proxy.ends = b"HTTP/1.1 200 OK\r\n", False
        why = f"the proxy http://127.0.0.1:{self.proxy.port} of HTTP_PROXY does not answer."
        await self.is_silent(self.proxy.was_asked, why)

    async def test_is_another_than_one_behind_which_the_relay_says_nothing(self) -> None:
        self.proxy.answer, self.proxy.ends = YES, False
        await self.is_silent(self.proxy.was_used, "the host does not answer.")

    async def is_silent(self, begins: asyncio.Event, why: str) -> None:
        """begins: from when on the time is waited for."""
        self.name_proxy(HTTP_PROXY=f"http://127.0.0.1:{self.proxy.port}")
        for failing, time_s in (
            (self.failure_of_attempt(self.connector("http")), HELLO_WITHIN_S),
            (self.failure_of_look_up(self.connector("http"), timeout=30), 30),
        ):
            begins.clear()
            failure = asyncio.create_task(failing)
            await begins.wait()
            with later(time_s):
                error = await asyncio.wait_for(failure, GENEROUS_S + time_s)
            self.assertTrue(error.message.endswith(f"is not reachable: {why}"), error.message)
            self.assertEqual(error.retry, "later")
            await asyncio.wait_for(self.proxy.until_left(), GENEROUS_S)

    async def test_holds_up_no_connector_that_is_closed(self) -> None:
        self.proxy.answer, self.proxy.ends = b"HTTP/1.1 200 OK\r\n", False
        connector = self.connector()
        with patch.object(connection, "HELLO_WITHIN_S", 600):
            starting = asyncio.create_task(connector.start())
            looking = asyncio.create_task(connector.check_online("agent://b", timeout=600))
            while len(self.proxy.heads) < 2:
                self.proxy.was_asked.clear()
                await self.proxy.was_asked.wait()
            await asyncio.wait_for(connector.close(), GENEROUS_S)
        ended = asyncio.gather(starting, looking, return_exceptions=True)
        codes = [cast(RelayError, error).code for error in await asyncio.wait_for(ended, GENEROUS_S)]
        self.assertEqual(codes, ["closed", "unreachable"])
        await asyncio.wait_for(self.proxy.until_left(), GENEROUS_S)
        self.assertNotIn("agent-relay-look-up", [thread.name for thread in threading.enumerate()])

    async def test_shows_no_password_in_any_log(self) -> None:
        with self.assertLogs(level=logging.DEBUG) as logs:
            for answer in (b"HTTP/1.1 407 No\r\n\r\n", b"HTTP/1.1 502 No\r\n\r\n", b"no", b""):
                self.proxy.answer = answer
                connector = self.connector()
                states: asyncio.Queue[ConnectorState] = asyncio.Queue()
                connector.on("state", states.put_nowait)
                starting = asyncio.create_task(connector.start())
                while (await asyncio.wait_for(states.get(), GENEROUS_S)).status == "connecting":
                    pass
                await connector.close()
                await asyncio.gather(starting, return_exceptions=True)
        self.assertIn("407", "".join(logs.output))
        self.assertNotRegex("".join(logs.output), f"p@ss|p%40ss|{BASIC[-8:]}")


def shown(error: BaseException) -> str:
    """All that a program may show of an error."""
    causes: Sequence[BaseException] = [found for found in (error, error.__cause__, error.__context__) if found]
    return "".join(map(repr, causes)) + "".join(traceback.format_exception(error)) + repr(vars(error))
