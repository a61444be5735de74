"""A server that is no relay, or one that lies, at the other end of the websocket."""

import asyncio
import unittest
from typing import Any

import websockets

from agent_relay_connector.frames import Frame
from agent_relay_connector.limits import MAX_INCOMING_BYTES
from agent_relay_connector.network_errors import unreachable
from agent_relay_connector.websocket import NO_CODE, Websocket

# Exported in a way that type checkers do not see.
serve: Any = getattr(websockets, "serve")
HELLO = '{"frame":"hello"}'


class End:
    """What is read of a websocket until it ends."""

    def __init__(self, url: str) -> None:
        self.frames: list[Frame] = []
        self._closed: asyncio.Future[tuple[int, Exception | None]] = asyncio.get_running_loop().create_future()
        self._websocket = Websocket(url, self.frames.append, lambda code, cause: self._closed.set_result((code, cause)))

    async def reached(self) -> tuple[int, Exception | None]:
        self._websocket.open()
        closed = await asyncio.wait_for(self._closed, 20)
        await self._websocket.close()
        return closed


class AServerThatRedirects(unittest.IsolatedAsyncioTestCase):
    async def test_chooses_no_other_host_for_the_agent(self) -> None:
        elsewhere: list[bytes] = []

        async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            elsewhere.append(await reader.readline())
            writer.close()

        async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(f"HTTP/1.1 302 Found\r\nlocation: ws://127.0.0.1:{inner_port}/secret\r\n".encode())
            writer.write(b"content-length: 0\r\n\r\n")
            writer.close()

        inner = await asyncio.start_server(note, "127.0.0.1")
        inner_port = inner.sockets[0].getsockname()[1]
        outer = await asyncio.start_server(redirect, "127.0.0.1")
        async with inner, outer:
            end = End(f"ws://127.0.0.1:{outer.sockets[0].getsockname()[1]}/ws")
            code, cause = await end.reached()
        self.assertEqual((code, elsewhere), (NO_CODE, []))
        self.assertEqual(unreachable("ws://relay.example/ws", cause).retry, "fix")


class AFrame(unittest.IsolatedAsyncioTestCase):
    async def test_is_read_up_to_its_bound(self) -> None:
        async def send(socket: Any, *_: str) -> None:
            await socket.send(HELLO.ljust(MAX_INCOMING_BYTES))
            await socket.send(HELLO.ljust(MAX_INCOMING_BYTES + 1))
            await socket.wait_closed()

        async with serve(send, "127.0.0.1", 0) as server:
            end = End(f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}")
            code, _ = await end.reached()
        self.assertEqual((len(end.frames), code), (1, NO_CODE))
