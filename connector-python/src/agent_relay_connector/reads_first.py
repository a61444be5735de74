"""A websocket of the library that reads what came in before it writes, and to its end.

The relay tells senders `delivered` once it has written to the socket. If the connection has ended since, a write that fails
would close the socket with all that is not read yet.
"""

import asyncio
import re
from typing import Any

import websockets
from websockets.datastructures import Headers

from .network_errors import UpgradeRefused

# Exported in a way that type checkers do not see.
Connect: Any = getattr(websockets, "connect")
# Before websockets 14.
_IS_LEGACY = hasattr(Connect, "handle_redirect")
_Connection: Any = getattr(websockets, "WebSocketClientProtocol" if _IS_LEGACY else "ClientConnection")
# Rounds of the event loop, of at most 256 KiB each, in which a write waits for what comes in. It is more than the relay and
# the system keep for a connection, and a peer that never ends holds up no heartbeat. Source: docs/protocol.md#slow-readers.
_MAX_ROUNDS = 64
# Without a message: the library bounds neither the parts of one nor their headers. All of two rounds may not be handed over
# yet.
_MAX_UNFINISHED_BYTES = 1_048_576
# Of an answer in place of the upgrade.
_MAX_ANSWER_BYTES = 65_536
_OLD_HTTP = b"HTTP/1.0"
_HEADER = re.compile(rb"\n([!#$%&'*+.^_`|~0-9A-Za-z-]+):([\t -~\x80-\xff]*)\r?(?=\n|$)")
_REFUSAL = re.compile(rb"HTTP/1\.[01] ([2-9][0-9]{2})[ \r\n]")


class _ReadsFirst:
    """Passes a transport on, but for when it writes: after two rounds without anything to read.

    In the first one, what was ready to be read before may not have been looked at.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._unwritten: list[bytes] = []
        self._rounds = 0
        self._quiet_rounds = 0
        self._has_ended = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def has_read(self) -> None:
        self._quiet_rounds = 0

    def write(self, data: bytes) -> None:
        if not self._unwritten:
            self._rounds = self._quiet_rounds = 0
            asyncio.get_running_loop().call_soon(self._next_round)
        self._unwritten.append(data)

    def write_eof(self) -> None:
        """A write after it is dropped: the library may still close a connection whose tasks were cancelled."""
        self._write_all()
        self._has_ended = True
        self._transport.write_eof()

    def close(self) -> None:
        self._write_all()
        self._transport.close()

    def _next_round(self) -> None:
        self._rounds += 1
        self._quiet_rounds += 1
        if self._quiet_rounds == 2 or self._rounds == _MAX_ROUNDS:
            self._write_all()
        else:
            asyncio.get_running_loop().call_soon(self._next_round)

    def _write_all(self) -> None:
        unwritten, self._unwritten = self._unwritten, []
        if unwritten and not self._has_ended and not self._transport.is_closing():
            self._transport.write(b"".join(unwritten))


class _Websocket(_Connection):  # type: ignore[misc]
    # What came in, until it tells the version of HTTP.
    _start: bytes | None = b""
    # Since the last message that was handed over.
    _bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        super().connection_made(_ReadsFirst(transport))

    def data_received(self, data: bytes) -> None:
        self.transport.has_read()
        if self._start is not None:
            data = self._start + data
            if len(data) < len(_OLD_HTTP) and _OLD_HTTP.startswith(data):
                self._start = data
                return
            self._start = None
            if data.startswith(_OLD_HTTP):
                # The library takes no older version, and would not tell the status of a refusal.
                data = b"HTTP/1.1" + data[len(_OLD_HTTP) :]
        self._bytes += len(data)
        if self._bytes > _MAX_UNFINISHED_BYTES:
            self.transport.abort()
        else:
            super().data_received(data)

    async def recv(self) -> Any:
        message = await super().recv()
        self._bytes = 0
        return message


class _Newest(_Websocket):
    # As long as it is read.
    _answer = b""

    def data_received(self, data: bytes) -> None:
        """The library takes the square of the time for twice as many chunks of a body."""
        if self.response is None:
            room = _MAX_ANSWER_BYTES - len(self._answer)
            self._answer += data[:room]
            super().data_received(data[:room])
            data = data[room:]
            if data and self.response is None:
                self.transport.abort()
                return
        if data:
            super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The library takes no status above 599."""
        super().connection_lost(exc)
        refusal = _REFUSAL.match(self._answer)
        if self.response is None and refusal is not None:
            if len(self._answer) == _MAX_ANSWER_BYTES or int(refusal[1]) >= 600:
                self.protocol.handshake_exc = UpgradeRefused(int(refusal[1]), _headers_in(self._answer))


def _headers_in(answer: bytes) -> Headers:
    """Of its head, as far as it was read, without what no header may have."""
    headers = Headers()
    for name, value in _HEADER.findall(re.split(rb"\r?\n\r?\n", answer, maxsplit=1)[0]):
        headers[name.decode()] = value.decode("latin-1").strip(" \t")
    return headers


class _Legacy(_Websocket):
    """After a reset, the library would discard what it has read and not handed over yet."""

    async def read_http_response(self) -> Any:
        """The library would follow a redirect, or fail where it does not say where to."""
        status, headers = await super().read_http_response()
        if 300 <= status < 400:
            raise UpgradeRefused(status, headers)
        return status, headers

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(None)

    def fail_connection(self, code: int = 1006, reason: str = "") -> None:
        """The library would leave the end of a failed handshake to a task for which nobody waits."""
        if hasattr(self, "transfer_data_task"):
            super().fail_connection(code, reason)
        else:
            self.transport.abort()


# Nothing pauses the reading. A round reads 256 KiB at most, and all of it is handed over before the next one.
READS_FIRST: dict[str, Any] = (
    {"create_protocol": _Legacy, "max_queue": None, "read_limit": 1 << 20}
    if _IS_LEGACY
    else {"create_connection": _Newest, "max_queue": None}
)
