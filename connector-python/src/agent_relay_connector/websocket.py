"""One websocket: parsed frames in, texts out."""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from inspect import signature
from typing import Any

from websockets.exceptions import ConnectionClosed, WebSocketException

from .background import Background
from .frames import Frame, read_frame
from .limits import CLOSE_WITHIN_S, MAX_INCOMING_BYTES
from .network_errors import without_secrets
from .proxy import ProxyError, target_of
from .reads_first import READS_FIRST
from .reads_first import Connect as LibraryConnect
from .tunnel import Tunnel
from .within import within

NO_CODE = 1006
# What an attempt to connect fails with: network, TLS, an answer that is no upgrade. Anything else is a fault of a program.
_FAILURES = (OSError, EOFError, asyncio.TimeoutError, WebSocketException)
# websockets 15 and later would read the environment as well.
_NO_PROXY: dict[str, Any] = {"proxy": None} if "proxy" in signature(LibraryConnect).parameters else {}


class _Connect(LibraryConnect):  # type: ignore[misc]
    """Follows no redirect: what the agent signs is for the host that it dialled, and no relay chooses another one for it."""

    def process_redirect(self, exc: Exception) -> Exception:
        """Of websockets 14 and later."""
        return exc


class Websocket:
    """frame: for every frame that is known.

    closed: once, and not after `close`, with the code and the cause of a failure. environment: names the proxies.
    """

    def __init__(
        self,
        url: str,
        frame: Callable[[Frame], None],
        closed: Callable[[int, Exception | None], None],
        environment: Mapping[str, str],
    ) -> None:
        self._url = url
        self._tunnel = Tunnel(url, environment)
        self._frame = frame
        self._closed = closed
        self._background = Background()
        self._outgoing: asyncio.Queue[str] = asyncio.Queue()
        self._socket: Any = None
        self._is_closing = False

    @property
    def silence(self) -> ProxyError | None:
        """What it fails with if its time is over now; None while no proxy is waited for."""
        return self._tunnel.silence

    def open(self) -> None:
        self._background.spawn(self._run())

    def send(self, text: str) -> None:
        """In the order of the calls. What cannot be sent any more is dropped: the end of the connection follows."""
        self._outgoing.put_nowait(text)

    async def close(self) -> None:
        """No event follows. Returns when the socket is gone, or the other end does not answer the close."""
        self._is_closing = True
        if self._socket is not None:
            with suppress(asyncio.TimeoutError):
                await within(self._socket.close(), CLOSE_WITHIN_S * 2)
        await self._background.stop()

    async def _run(self) -> None:
        try:
            if await self._has_connected():
                self._background.spawn(self._send_all())
                await self._receive_all()
        except Exception:
            # A fault of a program, which the task logs. Another attempt follows.
            self._end(NO_CODE, None)
            raise

    async def _has_connected(self) -> bool:
        try:
            self._socket = await self._connected()
        except _FAILURES as failure:
            self._end(NO_CODE, self._tunnel.failure(without_secrets(failure)))
            return False
        if self._is_closing:
            await self._socket.close()
        return not self._is_closing

    async def _receive_all(self) -> None:
        while True:
            try:
                message = await self._socket.recv()
            except ConnectionClosed as closed:
                return self._end(closed.rcvd.code if closed.rcvd is not None else NO_CODE, None)
            self._receive(message)

    async def _connected(self) -> Any:
        tunnel = await self._tunnel.open()
        # Whoever opened this ends the attempt. A timeout of the library could lose the tunnel between the two.
        return await _Connect(
            self._url,
            open_timeout=None,
            close_timeout=CLOSE_WITHIN_S,
            ping_interval=None,
            max_size=MAX_INCOMING_BYTES,
            **READS_FIRST,
            **_NO_PROXY,
            sock=tunnel,
            server_hostname=target_of(self._url).host if self._url.startswith("wss:") else None,
        )

    async def _send_all(self) -> None:
        with suppress(ConnectionClosed):
            while True:
                await self._socket.send(await self._outgoing.get())

    def _receive(self, message: object) -> None:
        frame = None if self._is_closing else read_frame(message)
        if frame is not None:
            self._frame(frame)

    def _end(self, code: int, cause: Exception | None) -> None:
        if self._is_closing:
            return
        self._is_closing = True
        self._closed(code, cause)
