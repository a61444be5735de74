"""A server that is no relay, or one that lies, at the other end of the websocket."""

import asyncio
import base64
import hashlib
import socket
import struct
import threading
import traceback
import unittest
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import Mock, patch

from agent_relay_connector import RelayError, reads_first
from agent_relay_connector.frames import Frame, HelloFrame
from agent_relay_connector.limits import MAX_INCOMING_BYTES
from agent_relay_connector.network_errors import is_refused_upgrade, unreachable
from agent_relay_connector.reads_first import _ReadsFirst
from agent_relay_connector.websocket import NO_CODE, Websocket

from .kit import GENEROUS_S, address_of, serve

HELLO = '{"frame":"hello"}'


class End:
    """What is read of a websocket until it ends."""

    def __init__(self, url: str, frame: Callable[[Frame], None] | None = None) -> None:
        self.frames: list[Frame] = []
        self._closed: asyncio.Future[tuple[int, Exception | None]] = asyncio.get_running_loop().create_future()
        self._websocket = Websocket(
            url, frame or self.frames.append, lambda code, cause: self._closed.set_result((code, cause)), {}
        )

    async def reached(self) -> tuple[int, Exception | None]:
        self._websocket.open()
        closed = await asyncio.wait_for(self._closed, GENEROUS_S)
        await self._websocket.close()
        return closed


class AFaultOfThisProgram(unittest.IsolatedAsyncioTestCase):
    async def test_in_what_a_frame_leads_to_is_logged_and_ends_the_connection(self) -> None:
        async def greet(connection: Any, *_: Any) -> None:
            await connection.send(HELLO)
            await connection.wait_closed()

        async with serve(greet, "127.0.0.1", 0) as server:
            end = End(f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}/ws", Mock(side_effect=ValueError("x")))
            with self.assertLogs("agent_relay_connector", "ERROR") as logs:
                self.assertEqual(await end.reached(), (NO_CODE, None))
        self.assertIn("ValueError: x", logs.output[0])


class AServerThatRedirects(unittest.IsolatedAsyncioTestCase):
    async def test_is_told_with_its_status_and_without_the_secrets_of_its_location(self) -> None:
        location = b"location: https://user:secret@other.example/login?token=secret\r\n"
        no_url = b"location: https:user:secret@other.example\r\n"
        for status, header in ((301, location), (302, b""), (308, b""), (300, location), (303, no_url)):
            answer = f"HTTP/1.1 {status} Elsewhere\r\ncontent-length: 0\r\n".encode() + header + b"\r\n"

            async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, answer: bytes = answer) -> None:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(answer)
                writer.close()

            server = await asyncio.start_server(redirect, "127.0.0.1")
            async with server:
                _, cause = await End(address_of(server) + "/ws").reached()
            error = unreachable("ws://relay.example/ws", cause)
            self.assertTrue(is_refused_upgrade(error), status)
            self.assertIn(str(status), error.message)
            self.assertEqual("other.example/login" in error.message, header == location)
            shown = "".join(traceback.format_exception(error)) + repr(cause) + repr(vars(cause))
            self.assertNotRegex(shown, "secret|user")

    async def error_of(self, said: bytes) -> RelayError:
        """What the upgrade fails with where a server says this."""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(said)
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1")
        async with server:
            _, cause = await End(address_of(server) + "/ws").reached()
        return unreachable("ws://relay.example/ws", cause)

    async def test_or_refuses_byte_by_byte_is_told_with_its_status_also_in_an_older_version_of_http(self) -> None:
        received = reads_first._Websocket.data_received

        def byte_by_byte(websocket: reads_first._Websocket, data: bytes) -> None:
            for byte in data:
                received(websocket, bytes([byte]))

        with patch.object(reads_first._Websocket, "data_received", byte_by_byte):
            error = await self.error_of(b"HTTP/1.0 503 No\r\nretry-after: 7 \r\nretry-after: 9\r\n\r\n")
        self.assertIn("answered with 503", error.message)
        self.assertEqual(error.retry_after, 7)

    async def test_or_upgrades_to_no_websocket_is_told_as_one_that_refuses(self) -> None:
        upgrade = "upgrade: websocket\r\nconnection: upgrade\r\n"
        other = "upgrade: other\r\nconnection: upgrade\r\n"
        for headers in ("", upgrade, f"{upgrade}sec-websocket-accept: x\r\n", other):
            error = await self.error_of(f"HTTP/1.1 101 Any\r\n{headers}\r\n".encode())
            self.assertEqual((is_refused_upgrade(error), error.retry), (True, "fix"), headers)
            self.assertIn("101, without the headers of a websocket", error.message)

    async def test_or_refuses_with_a_status_of_no_class_may_be_dialled_again(self) -> None:
        error = await self.error_of(b"HTTP/1.1 600 No\r\nretry-after: 7\r\n\r\n")
        self.assertIn("answered with 600", error.message)
        self.assertEqual((error.retry, error.retry_after), ("later", 7))

    async def test_or_refuses_at_length_is_told_with_what_its_headers_say(self) -> None:
        page = b"\r\n\r\n" + bytes(100_000)
        self.assertEqual((await self.error_of(b"HTTP/1.1 503 No\r\nx: \xe9\r\nretry-after: 7" + page)).retry_after, 7)
        redirect = await self.error_of(b"HTTP/1.1 301 No\r\nLocation: https://u:secret@other.example/a\r\ny: z" + page)
        self.assertIn("a redirect to https://other.example/a.", redirect.message)

    async def test_or_refuses_with_a_fault_in_its_headers_may_be_dialled_again(self) -> None:
        for header in (b"x: \x01", b"x y: z", b"x: " + b"a" * 20_000, b"x: a\r\n" * 300):
            error = await self.error_of(b"HTTP/1.1 301 No\r\nlocation: /there\r\n" + header + b"\r\n\r\n")
            self.assertTrue(error.message.endswith("its answer is not valid HTTP."), error.message)
            self.assertEqual(error.retry, "later")

    async def test_or_refuses_holds_up_nothing_by_what_it_goes_on_to_say(self) -> None:
        async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            with suppress(ConnectionError):
                writer.write(b"HTTP/1.1 403 No\r\ntransfer-encoding: chunked\r\n\r\n")
                while True:
                    writer.write(b"1\r\nx\r\n" * 10_000)
                    await writer.drain()

        server = await asyncio.start_server(refuse, "127.0.0.1")
        async with server:
            _, cause = await End(address_of(server) + "/ws").reached()
        self.assertIn("answered with 403", unreachable("ws://relay.example/ws", cause).message)

    async def test_with_a_header_that_is_none_is_told_without_it(self) -> None:
        error = await self.error_of(b"HTTP/1.1 302 Found\r\nlocation: \x01secret\r\n\r\n")
        self.assertNotIn("secret", "".join(traceback.format_exception(error)))

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
            end = End(address_of(outer) + "/ws")
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
            end = End(address_of(server))
            code, _ = await end.reached()
        self.assertEqual((len(end.frames), code), (1, NO_CODE))

    async def test_in_parts_without_end_ends_the_connection(self) -> None:
        async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(_upgrade(await reader.readuntil(b"\r\n\r\n")))
            writer.write(b"\x01\x00" + b"\x00\x00" * 60_000)
            with suppress(ConnectionError):
                await reader.read()
            writer.close()

        server = await asyncio.start_server(send, "127.0.0.1")
        async with server:
            end = End(address_of(server))
            # More would take the library seconds.
            with patch.object(reads_first, "_MAX_UNFINISHED_BYTES", 65_536):
                code, _ = await end.reached()
        self.assertEqual(code, NO_CODE)


class AWriteAfterTheEnd(unittest.IsolatedAsyncioTestCase):
    async def test_is_dropped(self) -> None:
        class Ended(asyncio.Transport):
            def write_eof(self) -> None:
                written.append(None)

            def write(self, data: object) -> None:
                written.append(data)

            def is_closing(self) -> bool:
                return False

        written: list[object] = []
        transport = _ReadsFirst(Ended())
        transport.write(b"before")
        transport.write_eof()
        transport.write(b"after")
        for _ in range(3):
            await asyncio.sleep(0)
        self.assertEqual(written, [b"before", None])


class AProcessThatStoodStill(unittest.IsolatedAsyncioTestCase):
    """Meanwhile the relay sent, pinged, and ended the connection."""

    async def test_reads_all_before_what_it_writes_can_lose_it(self) -> None:
        self.assertEqual(await self.read_of(_CLOSE, size=30_000), (85, 1013))

    async def test_reads_all_of_a_connection_that_was_reset(self) -> None:
        self.assertEqual(await self.read_of(b"", size=500, is_reset=True), (85, NO_CODE))

    async def read_of(self, farewell: bytes, size: int, is_reset: bool = False) -> tuple[int, int]:
        """How many of 85 deliveries were read, and the code of the end."""
        has_ended = threading.Event()

        def relay() -> None:
            connection, _ = listener.accept()
            with connection:
                request = b""
                while not request.endswith(b"\r\n\r\n"):
                    request += connection.recv(65_536)
                connection.sendall(_upgrade(request) + _frame(1, HELLO.encode()))
                deliver = _frame(1, b'{"frame":"deliver","envelope":{}}'.ljust(size))
                ping = _frame(9, b"")
                connection.sendall((deliver * 5 + ping) * 9 + deliver * 40 + farewell)
                if is_reset:
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            has_ended.set()

        def received(frame: Frame) -> None:
            if isinstance(frame, HelloFrame):
                has_ended.wait(20)
                for _ in range(3):
                    websocket.send("{}")
            else:
                frames.append(frame)

        frames: list[Frame] = []
        closed: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=relay)
            thread.start()
            url = f"ws://127.0.0.1:{listener.getsockname()[1]}"
            websocket = Websocket(url, received, lambda code, _: closed.set_result(code), {})
            websocket.open()
            code = await asyncio.wait_for(closed, GENEROUS_S)
            await websocket.close()
            thread.join()
        return len(frames), code


# A close of the relay with 1013.
_CLOSE = b"\x88\x02\x03\xf5"


def _upgrade(request: bytes) -> bytes:
    """Source: RFC 6455, 4.2.2."""
    key = next(line for line in request.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key: "))[19:]
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    upgrade = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    return upgrade + b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"


def _frame(opcode: int, data: bytes) -> bytes:
    length = bytes([len(data)]) if len(data) < 126 else b"\x7e" + struct.pack("!H", len(data))
    return bytes([0x80 | opcode]) + length + data
