"""Look-ups at a server that never comes to an end."""

import asyncio
import subprocess
import sys
import unittest
from unittest.mock import patch

from agent_relay_connector import Connector, RelayError
from agent_relay_connector.http import HttpClient
from agent_relay_connector.limits import LOOK_UPS_AT_ONCE
from agent_relay_connector.network_errors import NotHttp, unreachable

from .kit import GENEROUS_S, KEY, address_of

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n"
# What is dripped: of the body, or of the head.
STARTS = {"body": HEAD + b"\r\n", "head": HEAD + b"x: "}
# What is said at once, before JSON.
HEADS = {
    "quick": b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n",
    "moved": b"HTTP/1.1 301 Moved\r\nLocation: /there\r\ncontent-length: 7\r\n\r\n",
    "nowhere": b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\ncontent-length: 7\r\n\r\n",
    "later": b"HTTP/1.1 503 No\r\nRetry-After: 5 \r\nRetry-After: 9\r\ncontent-length: 7\r\n\r\n",
    "early": b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n",
    "noise": b"\x1b[2J is no status line\r\n\r\n",
    "future": b"HTTP/2\x1b[2J 200 OK\r\n\r\n",
}
# All that is said.
CUTS = {
    "empty": b"\r\n",
    "version": b"HTTP/1",
    "status": b"HTTP/1.1 2",
    "headers": b"HTTP/1.1 200 OK\r\ncontent-type: te",
    "answer": b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n0123456789",
    "refusal": b"HTTP/1.1 404 No\r\ncontent-length: 100\r\n\r\n",
}


class ADrippingServer(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.asked = self.left = 0
        self.is_over = False
        self.server = await asyncio.start_server(self.drip, "127.0.0.1")
        self.base = address_of(self.server, "http")
        self.http = HttpClient({})

    async def asyncTearDown(self) -> None:
        self.http.stop()
        self.is_over = True
        await self.until_left()
        self.server.close()
        await self.server.wait_closed()

    async def drip(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.asked += 1
        try:
            # Nothing, from who had given up before it asked.
            path = (await reader.readline()).decode().partition("/")[2].partition(" ")[0].partition("/")[0]
            writer.write({**STARTS, **HEADS, **CUTS}.get(path, b""))
            while path in STARTS and not self.is_over:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
            writer.write(b"" if path in CUTS else b'{"a":1}')
        except ConnectionError:
            pass
        finally:
            self.left += 1
            writer.close()

    async def until_left(self) -> None:
        while self.left < self.asked:
            await asyncio.sleep(0.01)

    async def test_is_heard_with_the_headers_of_its_answer_whatever_its_status(self) -> None:
        paths = ("quick", "moved", "nowhere", "later")
        quick, moved, nowhere, later = [await self.http.get(f"{self.base}/{path}", GENEROUS_S) for path in paths]
        self.assertEqual((quick.status, quick.headers["content-length"]), (200, "7"))
        self.assertEqual((moved.status, moved.headers["location"]), (301, "/there"))
        self.assertEqual((nowhere.status, later.headers["retry-after"]), (302, "5"))

    async def test_is_heard_after_early_hints(self) -> None:
        answer = await self.http.get(f"{self.base}/early", GENEROUS_S)
        self.assertEqual((answer.status, answer.members), (200, {"a": 1}))

    async def test_whose_answer_is_cut_may_be_asked_again(self) -> None:
        for path in CUTS:
            with self.assertRaises(OSError, msg=path) as cut:
                await self.http.get(f"{self.base}/{path}", GENEROUS_S)
            self.assertEqual(unreachable(self.base, cut.exception).retry, "later", path)

    async def test_keeps_no_look_up_beyond_its_time(self) -> None:
        for path in STARTS:
            all_turns = [self.http.get(f"{self.base}/{path}", 0.2) for _ in range(LOOK_UPS_AT_ONCE)]
            ended = await asyncio.gather(*all_turns, return_exceptions=True)
            self.assertEqual({type(error) for error in ended}, {asyncio.TimeoutError})
            answer = await self.http.get(f"{self.base}/quick", GENEROUS_S)
            self.assertEqual(answer.members, {"a": 1})
            await asyncio.wait_for(self.until_left(), GENEROUS_S)

    async def test_keeps_no_check_online_beyond_the_time_of_its_caller(self) -> None:
        connector = Connector(f"{self.base}/body", agent="agent://a", key=KEY)
        with patch.object(HttpClient, "get", autospec=True, side_effect=HttpClient.get) as get:
            with self.assertRaises(RelayError) as raised:
                await connector.check_online("agent://b", timeout=0.2)
        self.assertEqual(get.call_args.args[-1], 0.2)
        self.assertIsInstance(raised.exception.__cause__, asyncio.TimeoutError)
        await connector.close()

    async def test_is_left_when_the_connector_stops(self) -> None:
        looking = [asyncio.create_task(self.http.get(f"{self.base}/body", 600)) for _ in range(LOOK_UPS_AT_ONCE + 1)]
        while self.asked < LOOK_UPS_AT_ONCE:
            await asyncio.sleep(0.01)
        self.http.stop()
        await asyncio.wait_for(asyncio.gather(*looking, return_exceptions=True), GENEROUS_S)
        await asyncio.wait_for(self.until_left(), GENEROUS_S)
        with self.assertRaises(OSError):
            await self.http.get(f"{self.base}/quick", GENEROUS_S)

    async def test_that_speaks_no_http_is_told_in_texts_that_act_on_nothing(self) -> None:
        for path, kind in (("noise", NotHttp), ("future", OSError)):
            with self.assertRaises(kind) as caught:
                await self.http.get(f"{self.base}/{path}", GENEROUS_S)
            for error in (caught.exception, caught.exception.__cause__, caught.exception.__context__):
                self.assertNotIn("\x1b", str(error))

    async def test_does_not_keep_a_process(self) -> None:
        code = f"""
import asyncio, threading
from agent_relay_connector.http import HttpClient
loop = asyncio.new_event_loop()
looking = loop.create_task(HttpClient({{}}).get("{self.base}/body", 600))
while threading.active_count() == 1:
    loop.run_until_complete(asyncio.sleep(0.01))
"""
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stderr=subprocess.DEVNULL)
        await asyncio.wait_for(process.wait(), GENEROUS_S)
