"""First starts, and why a relay could not be reached."""

import asyncio
import errno
import json
import math
import os
import socket
import ssl
import time
import unittest
from collections.abc import Callable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock, patch

from websockets.datastructures import Headers
from websockets.exceptions import InvalidMessage, WebSocketException

from agent_relay_connector import Connector, Presence, RelayError, backoff, first_start
from agent_relay_connector.background import Background
from agent_relay_connector.check_online import CheckOnline
from agent_relay_connector.first_start import FirstStart
from agent_relay_connector.http import HttpClient
from agent_relay_connector.limits import UNKNOWN_KEY_PRESENTED_S
from agent_relay_connector.network_errors import no_relay_at, retry_after_of, unreachable, without_secrets
from agent_relay_connector.proxy import ProxyError
from agent_relay_connector.self_test import SelfTest

from .kit import GENEROUS_S, KEY, ScriptedRelay, serve

UNKNOWN_KEY = RelayError("unknown_key")
UNKNOWN_ISSUER = RelayError("invalid_credential", "unknown_issuer: the relay knows no issuer with this iss and kid.")
WEBSOCKET = "wss://relay.example/ws"


def tls_error(reason: str | None) -> ssl.SSLError:
    """As `ssl` raises it, with OpenSSL's word for the reason."""
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = cast(str, reason)
    return error


def refused_with(status: int, **headers: str) -> Exception:
    """An answer in place of the upgrade, as versions of `websockets` before 14 raise it."""
    error = Exception(status)
    setattr(error, "status_code", status)
    told = Headers()
    for name, value in headers.items():
        # Newer versions of the library take no control character.
        with suppress(WebSocketException):
            told[name.replace("_", "-")] = value
    setattr(error, "headers", told)
    return error


class Looks(CheckOnline):
    """Answers in turn, the last again and again."""

    def __init__(self, *answers: str | RelayError) -> None:
        super().__init__("", HttpClient({}))
        self.answers = list(answers)
        self.asked = 0
        self.was_asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def presence_of(self, agent: str, timeout_s: float = 0) -> Presence:
        answer = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        self.was_asked.set()
        await self.may_answer.wait()
        if isinstance(answer, RelayError):
            raise answer
        return Presence(agent, "online" if answer == "online" else "offline", answer == "online", {})


class AFirstStart(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.told: list[RelayError] = []
        self.ended: list[RelayError] = []
        # Seconds, none of which is waited for.
        self.waits: list[float] = []
        self.background = Background()
        self.addAsyncCleanup(self.background.stop)
        for module in (first_start, backoff):
            waits = patch.object(module, "jittered_s", self.waited)
            waits.start()
            self.addCleanup(waits.stop)
        looks_again = patch.object(first_start, "OWN_LOOK_AGAIN_S", 0.01)
        looks_again.start()
        self.addCleanup(looks_again.stop)

    def waited(self, wait_s: float, _: float = 0) -> float:
        self.waits.append(wait_s)
        return 0

    def first(self, *answers: str | RelayError, take_over: bool = False) -> tuple[FirstStart, Looks]:
        looks = Looks(*answers)
        tell, end = self.told.append, self.ended.append
        judge = SelfTest("", HttpClient({}))
        return FirstStart("agent://a", looks, judge, take_over, self.background, tell, end), looks

    def fails(self, first: FirstStart, cause: Exception) -> None:
        """An attempt reaches no relay: as the connector takes it."""
        error = unreachable(WEBSOCKET, cause)
        if first.is_ended_by(error):
            self.ended.append(error)
        first.unreachable(error)

    async def test_does_not_register_who_stays_online_elsewhere_unless_it_takes_over(self) -> None:
        first, looks = self.first("online")
        with self.assertRaises(RelayError) as raised:
            await first.before_register(lambda: "")
        self.assertEqual((raised.exception.code, looks.asked), ("superseded_elsewhere", 5))
        first, looks = self.first("online", take_over=True)
        await first.before_register(lambda: "")
        self.assertEqual(looks.asked, 0)

    async def test_takes_nothing_over_where_nobody_will_ever_tell_and_says_why(self) -> None:
        for bar in (RelayError("not_a_relay"), RelayError("refused", retry="fix")):
            first, looks = self.first(bar)
            with patch.object(first_start, "UNKNOWN_KEY_PRESENTED_S", 0), self.assertRaises(RelayError) as raised:
                await first.before_register(lambda: "")
            self.assertEqual((raised.exception, looks.asked), (bar, 1))

    async def test_waits_while_an_edge_that_is_being_changed_answers_for_its_relay_and_says_so(self) -> None:
        edge = [RelayError("not_a_relay")] * 2
        first, _ = self.first(*edge, "offline")
        await first.before_register(lambda: "")
        self.assertEqual(self.told, edge)

    async def test_is_refused_where_something_else_answers_for_10_s_without_an_answer_of_the_relay_in_between(self) -> None:
        page, relay, proxy = RelayError("not_a_relay"), RelayError("unavailable"), RelayError("unreachable")
        turns = [(0.0, page), (9.9, page), (0, relay), (9.9, page), (9.9, page), (0.1, proxy), (0, page)]
        first, looks = self.first(*(answer for _, answer in turns))
        now = 1000.0
        steps = iter(turns)

        def told(agent: str, timeout_s: float = 0) -> Any:
            nonlocal now
            now += next(steps)[0]
            return Looks.presence_of(looks, agent)

        with patch.object(first_start, "time", Mock(monotonic=lambda: now)), patch.object(looks, "presence_of", told):
            with self.assertRaises(RelayError) as raised:
                await first.before_register(lambda: "")
        self.assertEqual((raised.exception, looks.asked), (page, len(turns)))
        self.assertEqual(self.told, [answer for _, answer in turns[:-1]])

    async def test_registers_who_is_gone_soon_and_asks_no_more(self) -> None:
        turns: list[list[str | RelayError]] = [["online", "offline"], ["offline"]]
        for answers in turns:
            first, looks = self.first(*answers)
            await first.before_register(lambda: "")
            await first.before_register(lambda: "")
            self.assertEqual((looks.asked, self.told), (len(answers), []))

    async def test_asks_again_until_it_can_be_told_and_takes_nobody_from_its_connection_meanwhile(self) -> None:
        waits = [RelayError("unavailable", retry_after=0.001), RelayError("rate_limited", retry_after=60)]
        away = [*waits, *waits, *waits, RelayError("unreachable")]
        first, looks = self.first(*away, "offline")
        await first.before_register(lambda: "")
        self.assertEqual((looks.asked, self.told), (8, away))
        self.assertEqual(self.waits, [0.001, 60, 0.001, 60, 0.001, 60, 2])
        first, looks = self.first("online", *away, "online")
        with self.assertRaises(RelayError) as raised:
            await first.before_register(lambda: "")
        self.assertEqual((raised.exception.code, looks.asked), ("superseded_elsewhere", 12))

    async def test_asks_a_relay_that_does_not_answer_again_after_a_wait_that_doubles_from_250_ms_to_2_s(self) -> None:
        first, _ = self.first(*[RelayError("unreachable"), RelayError("not_a_relay")] * 3, "offline")
        await first.before_register(lambda: "")
        self.assertEqual(self.waits, [0.25, 0.5, 1, 2, 2, 2])

    async def test_waits_on_whatever_becomes_of_the_connection_that_waits_for_it(self) -> None:
        first, looks = self.first("offline")
        looks.may_answer.clear()
        given_up = asyncio.create_task(first.before_register(lambda: ""))
        await looks.was_asked.wait()
        given_up.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await given_up
        following = asyncio.create_task(first.before_register(lambda: ""))
        looks.may_answer.set()
        await following
        self.assertEqual(looks.asked, 1)

    async def test_tells_nothing_once_it_has_stopped(self) -> None:
        first, looks = self.first(RelayError("unreachable"))
        looks.may_answer.clear()
        waiting = asyncio.create_task(first.before_register(lambda: ""))
        await looks.was_asked.wait()
        looks.may_answer.set()
        first.stop()
        with self.assertRaises(asyncio.CancelledError):
            await asyncio.wait_for(waiting, GENEROUS_S)
        self.assertEqual(self.told, [])

    def test_presents_what_is_not_known_yet_again_for_some_time_and_after_no_other_refusal(self) -> None:
        first, _ = self.first("offline")
        expired = RelayError("invalid_credential", "expired: its term is over.")
        for refusal in (RelayError("bad_signature"), expired):
            self.assertFalse(first.may_pass(refusal))
        for unknown in (UNKNOWN_KEY, UNKNOWN_ISSUER):
            first, _ = self.first("offline")
            self.told.clear()
            with patch("time.monotonic") as now:
                now.return_value = 1000.0
                self.assertTrue(first.may_pass(unknown))
                self.assertTrue(first.presents_again(unknown))
                now.return_value += UNKNOWN_KEY_PRESENTED_S
                self.assertFalse(first.may_pass(unknown))
            self.assertEqual(self.told, [unknown])
            first, _ = self.first("offline")
            first.succeeded()
            self.assertFalse(first.may_pass(unknown))
            self.assertFalse(first.presents_again(unknown))

    async def test_ends_at_once_where_nothing_can_heal_and_a_reconnect_never_does(self) -> None:
        first, _ = self.first("offline")
        self.fails(first, ConnectionRefusedError(errno.ECONNREFUSED, "refused"))
        self.assertEqual(self.ended, [])
        self.fails(first, tls_error("WRONG_VERSION_NUMBER"))
        self.assertEqual([error.retry for error in self.ended], ["fix"])
        first.succeeded()
        self.fails(first, tls_error("WRONG_VERSION_NUMBER"))
        self.assertEqual((len(self.ended), len(self.told)), (1, 3))

    async def test_goes_on_for_a_minute_where_the_upgrade_is_refused_since_an_answer_of_the_relay(self) -> None:
        now = 1000.0
        first, _ = self.first("offline")
        with patch.object(first_start, "time", Mock(monotonic=lambda: now)):
            for status, wait_s in ((503, 0.0), (404, 60.0), (403, 59.9)):
                now += wait_s
                self.fails(first, refused_with(status))
            await first.before_register(lambda: "")
            for status, wait_s in ((301, 10.0), (200, 59.9)):
                now += wait_s
                self.fails(first, refused_with(status))
            self.assertEqual((len(self.told), self.ended), (5, []))
            now += 0.1
            self.fails(first, refused_with(401))
        self.assertEqual(self.ended, self.told[5:])

    async def test_without_end_outlasts_whatever_answers_in_the_place_of_the_relay(self) -> None:
        first, _ = self.first("offline")
        first.is_endless = True
        with patch.object(first_start, "REFUSED_UPGRADE_S", 0):
            self.fails(first, refused_with(403))
        self.fails(first, ProxyError("failed", "HTTP_PROXY", "the proxy answered with 403", 403))
        self.assertEqual((len(self.told), self.ended), (2, []))
        first.is_endless = False
        self.fails(first, ProxyError("failed", "HTTP_PROXY", "the proxy answered with 403", 403))
        self.assertEqual(self.ended, self.told[2:])
        first, looks = self.first(RelayError("not_a_relay"), RelayError("not_a_relay"), "offline")
        first.is_endless = True
        with patch.object(first_start, "UNKNOWN_KEY_PRESENTED_S", 0):
            await first.before_register(lambda: "")
        self.assertEqual(looks.asked, 3)

    def test_of_which_the_time_is_over_says_why_the_last_attempt_failed(self) -> None:
        first, _ = self.first("offline")
        first.time_is_over()
        self.fails(first, ConnectionRefusedError(errno.ECONNREFUSED, "refused"))
        first.time_is_over()
        without, with_cause = self.ended
        self.assertEqual((without.code, with_cause.code, without.__cause__), ("timeout", "timeout", None))
        self.assertIn("has not answered", without.message)
        self.assertIs(with_cause.__cause__, self.told[0])
        self.assertEqual(with_cause.hint, self.told[0].hint)


class AKeyThatNeverBecomesKnown(unittest.IsolatedAsyncioTestCase):
    async def test_ends_its_connector_with_unknown_key(self) -> None:
        relay = ScriptedRelay()
        relay.answer = lambda _: {"frame": "error", "code": "unknown_key"}
        await relay.start()
        self.addAsyncCleanup(relay.stop)
        connector = Connector(relay.url, agent="agent://a", key=KEY, take_over=True)
        self.addAsyncCleanup(connector.close)
        connector.on("error", lambda _: None)
        with patch.object(first_start, "UNKNOWN_KEY_PRESENTED_S", 0), self.assertRaises(RelayError) as raised:
            await asyncio.wait_for(connector.start(), GENEROUS_S)
        self.assertEqual((raised.exception.code, raised.exception.retry), ("unknown_key", "fix"))
        self.assertEqual(connector.state.status, "closed")
        with self.assertRaises(RelayError) as refused:
            await connector.send("agent://b", {})
        self.assertEqual((refused.exception.code, refused.exception.outcome), ("unknown_key", "refused"))


class WhyARelayCannotBeReached(unittest.IsolatedAsyncioTestCase):
    def test_decides_whether_another_attempt_can_help(self) -> None:
        def verification(code: int) -> ssl.SSLCertVerificationError:
            error = ssl.SSLCertVerificationError(1, "CERTIFICATE_VERIFY_FAILED")
            error.verify_code = code
            return error

        lasting: list[Exception] = [*map(verification, (9, 10, 18, 19, 20, 21, 62, 64))]
        passing: list[Exception] = [
            ConnectionRefusedError(errno.ECONNREFUSED, "x"),
            ConnectionResetError(errno.ECONNRESET, "x"),
            OSError(errno.EHOSTUNREACH, "x"),
            OSError("several"),
            socket.gaierror(socket.EAI_NONAME, "x"),
            EOFError(),
            TimeoutError(),
            ssl.SSLEOFError(8, "x"),
        ]
        for cause in lasting:
            error = unreachable(WEBSOCKET, cause)
            self.assertEqual((error.retry, error.__cause__), ("fix", cause), cause)
            self.assertIn("https://relay.example/ws", error.message)
        for cause in passing:
            self.assertEqual(unreachable(WEBSOCKET, cause).retry, "later", cause)
        self.assertEqual(len({unreachable(WEBSOCKET, cause).hint for cause in (*lasting, *passing)}), 10)

    def test_tells_what_tls_failed_for_and_calls_nothing_plain_http_that_speaks_tls(self) -> None:
        turns = (
            ("WRONG_VERSION_NUMBER", "fix", "http://"),
            ("PACKET_LENGTH_TOO_LONG", "fix", "http://"),
            ("RECORD_LAYER_FAILURE", "fix", "http://"),
            ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "fix", "presents none"),
            ("SSLV3_ALERT_BAD_CERTIFICATE", "fix", "presents none"),
            ("SSLV3_ALERT_HANDSHAKE_FAILURE", "fix", "in common"),
            ("TLSV1_ALERT_PROTOCOL_VERSION", "fix", "in common"),
            ("UNSUPPORTED_PROTOCOL", "fix", "in common"),
            ("TLSV1_UNRECOGNIZED_NAME", "fix", "host name"),
            ("TLSV1_ALERT_INTERNAL_ERROR", "later", "operator"),
            (None, "later", "operator"),
        )
        for reason, retry, hint in turns:
            cause = tls_error(reason)
            late = InvalidMessage("did not receive a valid HTTP response")
            late.__cause__ = cause
            for error in (unreachable(WEBSOCKET, cause), unreachable(WEBSOCKET, late)):
                self.assertEqual(error.retry, retry, reason)
                self.assertIn(hint, error.hint, reason)

    def test_in_tls_has_the_same_verdict_in_both_languages(self) -> None:
        table = json.loads((Path(__file__).parent / "tls_failures.json").read_text("utf-8"))
        for retry, reasons in table.items():
            for reason in reasons:
                self.assertEqual(unreachable(WEBSOCKET, tls_error(reason)).retry, retry, reason)

    def test_is_that_its_address_leads_past_its_websocket_where_that_does_not_end_in_ws(self) -> None:
        prefixed = "wss://relay.example/prefix"
        named = "at https://relay.example/prefix, use that address, or wss://relay.example/prefix/ws."
        for status in (301, 400, 401, 403, 404, 426):
            self.assertIn(named, unreachable(prefixed, refused_with(status)).hint)
        for address, status in ((f"{prefixed}/ws", 404), (prefixed, 503)):
            self.assertNotIn("ws://", unreachable(address, refused_with(status)).hint)

    def test_is_the_address_without_its_second_ws(self) -> None:
        hint = unreachable("wss://relay.example/prefix/ws/ws", refused_with(404)).hint
        self.assertIn("Use https://relay.example/prefix: ", hint)

    def test_is_that_the_file_of_authorities_cannot_be_read(self) -> None:
        failure = ssl.SSLCertVerificationError("certificate verify failed")
        failure.verify_code = 18
        for file, is_named in (("/nowhere/ca.pem", True), (__file__, False)):
            with patch.dict(os.environ, {"SSL_CERT_FILE": file}):
                self.assertEqual(f"{file}, which" in unreachable(WEBSOCKET, failure).hint, is_named)

    def test_may_be_tls_where_400_is_answered_to_plain_http(self) -> None:
        self.assertIn("use https:// (or wss://)", unreachable("ws://relay.example/ws", refused_with(400)).hint)
        for address, status in ((WEBSOCKET, 400), ("ws://relay.example/ws", 404)):
            self.assertNotIn("TLS", unreachable(address, refused_with(status)).hint)

    def test_is_a_redirect_and_where_to_without_user_password_and_query(self) -> None:
        table = json.loads((Path(__file__).parent / "addresses.json").read_text("utf-8"))["redirects"]
        said = "The relay at https://relay.example/x/ws is not reachable: the upgrade to a websocket was answered with 301"
        for location, place in table.items():
            refused = refused_with(301, Location=location)
            message = f"{said}." if place is None else f"{said}, a redirect to {place}."
            for failure in (refused, without_secrets(refused)):
                self.assertEqual(unreachable("wss://relay.example/x/ws", failure).message, message, location)
        self.assertEqual(unreachable("wss://relay.example/x/ws", refused_with(301)).message, f"{said}.")

    async def test_is_that_nothing_there_speaks_http_unless_it_speaks_an_older_version(self) -> None:
        with patch.object(first_start, "REFUSED_UPGRADE_S", 0):
            error = await self.start_at(b"SSH-2.0-any\r\n\r\n", lambda port: f"http://127.0.0.1:{port}")
        self.assertIn("what answers there does not speak HTTP", error.message)
        self.assertEqual((error.code, error.retry), ("unreachable", "fix"))
        old = InvalidMessage("did not receive a valid HTTP response")
        for quoted in ("unsupported HTTP version: HTTP/1.0", "unsupported protocol; expected HTTP/1.1: HTTP/1.0 503 No"):
            old.__cause__ = ValueError(quoted)
            self.assertEqual(unreachable(WEBSOCKET, without_secrets(old)).retry, "later")

    async def test_is_none_for_a_dot_at_the_end_of_a_name(self) -> None:
        with patch.object(first_start, "REFUSED_UPGRADE_S", 0):
            error = await self.start_at(b"HTTP/1.1 403 No\r\n\r\n", lambda port: f"http://localhost.:{port}")
        self.assertIn("answered with 403", error.message)

    def test_has_the_hint_of_the_upgrade_where_an_edge_answers_look_ups(self) -> None:
        answers: list[tuple[int, dict[str, str]]] = [(status, {}) for status in (302, 401, 403)]
        for status, headers in (*answers, (301, {"location": "/there"}), (503, {"retry-after": "7"})):
            look_up = no_relay_at("https://relay.example", status, headers)
            upgrade = unreachable(WEBSOCKET, refused_with(status, **{n.replace("-", "_"): v for n, v in headers.items()}))
            self.assertEqual((look_up.hint, look_up.retry_after), (upgrade.hint, upgrade.retry_after), status)
            self.assertEqual("https://relay.example/there" in look_up.message, status == 301)
        self.assertEqual(no_relay_at("https://relay.example", 404, {}).hint, RelayError("not_a_relay").hint)

    def test_may_ask_to_be_left_alone_for_so_many_seconds_or_until_a_date_and_is_for_a_minute_at_most(self) -> None:
        table = json.loads((Path(__file__).parent / "retry_after.json").read_text("utf-8"))
        now = parsedate_to_datetime(table["now"]).timestamp()
        with patch.object(time, "time", return_value=now):
            for text, wait_s in table["waits"]:
                self.assertEqual(retry_after_of(text), wait_s, text)
        error = unreachable(WEBSOCKET, refused_with(503, Retry_After="7"))
        self.assertEqual((error.retry_after, "in 7 s" in error.hint), (7, True))
        for cause in (refused_with(503), refused_with(403, Retry_After="7")):
            self.assertIsNone(unreachable(WEBSOCKET, cause).retry_after)

    async def start_at(self, answer: bytes, url: Callable[[int], str]) -> RelayError:
        """The error of a start at a server that answers everything with that."""

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(1)
            writer.write(answer)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        connector = Connector(url(server.sockets[0].getsockname()[1]), agent="agent://a", key=KEY)
        connector.on("error", lambda _: None)
        self.states: list[str] = []
        connector.on("state", lambda state: self.states.append(state.status))
        try:
            with self.assertRaises(RelayError) as raised:
                await connector.start(timeout=GENEROUS_S)
            self.assertEqual(connector.state.status, "closed")
            return raised.exception
        finally:
            server.close()
            await server.wait_closed()

    async def test_ends_a_start_for_a_wrong_path_and_a_closed_door_that_stay_and_at_once_for_a_wrong_scheme(self) -> None:
        hints = set()
        soon = patch.object(first_start, "REFUSED_UPGRADE_S", 0)
        soon.start()
        self.addCleanup(soon.stop)
        for status in (400, 401, 403, 404):
            answer = f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\n\r\n".encode()
            error = await self.start_at(answer, lambda port: f"http://127.0.0.1:{port}")
            self.assertEqual((error.code, error.retry), ("unreachable", "fix"), status)
            self.assertIn(str(status), error.message)
            hints.add(error.hint)
        self.assertEqual(len(hints), 3)
        plain = b"HTTP/1.1 400 No\r\n\r\n"
        error = await self.start_at(plain, lambda port: f"https://127.0.0.1:{port}")
        self.assertEqual((error.code, error.retry), ("unreachable", "fix"))
        # None that it is tried again in.
        self.assertEqual(self.states, ["connecting", "closed"])

    async def test_ends_no_start_that_may_take_for_ever(self) -> None:
        soon = patch.object(first_start, "REFUSED_UPGRADE_S", 0)
        soon.start()
        self.addCleanup(soon.stop)
        told: list[RelayError] = []
        was_told = asyncio.Event()

        def failed(error: RelayError) -> None:
            told.append(error)
            was_told.set()

        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 403 No\r\ncontent-length: 0\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            connector = Connector(f"http://127.0.0.1:{port}", agent="agent://a", key=KEY, start_timeout=math.inf)
            connector.on("error", failed)
            starting = asyncio.create_task(connector.start())
            await asyncio.wait_for(was_told.wait(), GENEROUS_S)
            self.assertEqual(connector.state.status, "reconnecting")
            await connector.close()
            with self.assertRaises(RelayError) as raised:
                await starting
        self.assertEqual((raised.exception.code, told[0].retry), ("closed", "fix"))
