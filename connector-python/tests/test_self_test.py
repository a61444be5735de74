"""A start under an agent that is online elsewhere, at a relay that judges its key."""

import asyncio
import contextlib
import json
import unittest
from typing import Any
from unittest.mock import Mock, patch

from agent_relay_connector import Connector, RelayError, first_start
from agent_relay_connector.background import Background
from agent_relay_connector.check_online import CheckOnline
from agent_relay_connector.first_start import FirstStart
from agent_relay_connector.http import HttpClient
from agent_relay_connector.limits import SELF_TEST_MAX_BYTES, SELF_TEST_TIMEOUT_S
from agent_relay_connector.self_test import SelfTest

from .kit import GENEROUS_S, KEY, NOWHERE, ScriptedRelay, address_of, later

REGISTER = '{"type":"agent.register","sig":"…"}'
OF_KEY = ("bad_signature", "unknown_key", "key_not_allowed", "invalid_credential", "wrong_relay")


def answer(status: int, body: str) -> bytes:
    text = body.encode()
    return f"HTTP/1.1 {status} Said\r\ncontent-length: {len(text)}\r\n\r\n".encode() + text


def refusal(code: str, **members: Any) -> bytes:
    return answer(400, json.dumps({"code": code, "detail": f"It is {code}.", "retry": "fix", **members}))


ONLINE = answer(200, '{"status":"online"}')
OFFLINE = answer(200, '{"status":"offline"}')


class AStartOfWhoIsOnlineElsewhere(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.presence = ONLINE
        # What the self-test answers; None for nothing, until the test is over.
        self.verdict: bytes | None = None
        # Request line, headers and body of each self-test.
        self.judged: list[tuple[str, str, str]] = []
        self.is_asked = asyncio.Event()
        self.is_over = asyncio.Event()
        self.server = await asyncio.start_server(self.relay, "127.0.0.1")
        self.base = address_of(self.server, "http")
        self.http = HttpClient({})
        self.background = Background()
        waits = patch.object(first_start, "OWN_LOOK_AGAIN_S", 0)
        waits.start()
        self.addCleanup(waits.stop)

    async def asyncTearDown(self) -> None:
        self.is_over.set()
        self.http.stop()
        await self.background.stop()
        self.server.close()
        await self.server.wait_closed()

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            line, _, headers = (await reader.readuntil(b"\r\n\r\n")).decode().lower().partition("\r\n")
            if line.startswith("get /api/onboarding/check-online?"):
                writer.write(self.presence)
            else:
                length = int(headers.partition("content-length: ")[2].partition("\r\n")[0])
                self.judged.append((line, headers, (await reader.readexactly(length)).decode()))
                self.is_asked.set()
                if self.verdict is None:
                    await self.is_over.wait()
                writer.write(self.verdict or b"")
            await writer.drain()
        writer.close()

    async def refused(self, base: str | None = None) -> RelayError:
        """Why a start does not register. base: where it has the key judged."""
        with self.assertRaises(RelayError) as raised:
            await asyncio.wait_for(self.first(base).before_register(lambda: REGISTER), GENEROUS_S)
        return raised.exception

    def first(self, base: str | None = None) -> FirstStart:
        look, judge = CheckOnline(self.base, self.http), SelfTest(base or self.base, self.http)
        return FirstStart("agent://a", look, judge, False, self.background, Mock(), Mock())

    async def test_is_told_what_the_relay_has_against_its_key_with_which_it_could_take_nothing_over(self) -> None:
        for code in OF_KEY:
            self.verdict = refusal(code)
            error = await self.refused()
            self.assertEqual((error.code, error.retry), (code, "fix"))
        line, headers, body = self.judged[0]
        self.assertEqual((line, body), ("post /api/self-test http/1.1", REGISTER))
        self.assertIn("content-type: application/json\r\n", headers)
        self.assertEqual(len(self.judged), len(OF_KEY))

    async def test_has_the_register_judged_that_would_go_out_and_sends_none(self) -> None:
        relay = ScriptedRelay()
        await relay.start()
        self.addAsyncCleanup(relay.stop)
        self.verdict = refusal("bad_signature")
        connector = Connector(relay.url, http_url=self.base, agent="agent://a", key=KEY)
        self.addAsyncCleanup(connector.close)
        with self.assertRaises(RelayError) as raised:
            await asyncio.wait_for(connector.start(), GENEROUS_S)
        self.assertEqual((raised.exception.code, raised.exception.outcome), ("bad_signature", "refused"))
        register = json.loads(self.judged[0][2])
        self.assertEqual((register["type"], register["key_id"]), ("agent.register", "a-1"))
        self.assertEqual(relay.received, [])

    async def test_is_told_of_the_other_connection_whatever_else_the_self_test_answers(self) -> None:
        turns = {
            "it takes the key": answer(200, '{"ok":true}'),
            "it has something else against it": refusal("clock_skew"),
            "it counts": refusal("rate_limited", retry_after_ms=60_000),
            "it does not know the path": answer(404, '{"code":"not_found"}'),
            "a proxy answers": answer(502, "<html>"),
            "a code that is none": answer(400, '{"code":{"bad_signature":[]}}'),
            "no UTF-8": b"HTTP/1.1 400 Said\r\ncontent-length: 1\r\n\r\n\xff",
            "too deep": answer(400, "[" * 60_000),
            "no HTTP": b"\x1b[2J\r\n\r\n",
            "nothing": b"",
            "half of it": refusal("bad_signature")[:-1],
            "more than it may": refusal("bad_signature", more=" " * SELF_TEST_MAX_BYTES),
        }
        for what, said in turns.items():
            self.verdict = said
            self.assertEqual((await self.refused()).code, "superseded_elsewhere", what)
        self.assertEqual(len(self.judged), len(turns))

    async def test_is_told_of_the_other_connection_where_no_self_test_is_reached(self) -> None:
        for base in (NOWHERE, "nowhere"):
            self.assertEqual((await self.refused(base)).code, "superseded_elsewhere", base)

    async def test_waits_for_no_self_test_that_hangs(self) -> None:
        refused = asyncio.create_task(self.refused())
        await asyncio.wait_for(self.is_asked.wait(), GENEROUS_S)
        with later(SELF_TEST_TIMEOUT_S):
            self.assertEqual((await refused).code, "superseded_elsewhere")

    async def test_has_nothing_judged_where_it_may_register(self) -> None:
        self.presence = OFFLINE
        register = Mock()
        await self.first().before_register(register)
        self.assertEqual((self.judged, register.called), ([], False))
