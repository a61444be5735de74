"""A connection to the host of an address, maybe through a proxy. Source: RFC 9110, section 9.3.6."""

import asyncio
import re
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress

from .dial import dial
from .limits import MAX_PROXY_ANSWER_BYTES, PROXY_HEADERS_WITHIN_S
from .network_errors import may_pass, retry_after_of, unspoken_in
from .proxy import Proxy, ProxyError, proxy_of, target_of

# A start that outlasts a proxy which refuses outlasts a portal.
PORTAL_STATUS = 200
_STATUS_LINE = re.compile(rb"HTTP/1\.[0-9] ([0-9]{3})[ \r\n]")
_RETRY_AFTER = re.compile(rb"\nretry-after:([\t -~]*)\r?\n", re.IGNORECASE)


class Tunnel:
    """The way to the host of an address, for one attempt."""

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        """environment: names the proxies. It is not read before `open`."""
        self._url = url
        self._environment = environment
        # Whose answer is awaited, and which one the connection leads through.
        self._asked: Proxy | None = None
        self._passed: Proxy | None = None

    @property
    def silence(self) -> ProxyError | None:
        """What the attempt fails with if its time is over now; None while no proxy is waited for."""
        return None if self._asked is None else self._asked.error("failed", "does not answer")

    def failure(self, error: Exception) -> Exception:
        """What the attempt failed with, of which the proxy may be the reason."""
        unspoken = unspoken_in(error)
        if self._passed is None or unspoken is None:
            return error
        return self._passed.error("portal", f"leads to something that does not speak {unspoken}", PORTAL_STATUS)

    async def open(self) -> socket.socket:
        """Without TLS. Raises OSError. Its caller bounds the time; cancelled, it leaves no socket."""
        target = target_of(self._url)
        proxy = self._asked = proxy_of(self._url, self._environment)
        if proxy is None:
            return await dial(target.host, target.port)
        connection = await _reached(proxy)
        try:
            await _ask(proxy, connection, target.place)
        except BaseException:
            connection.close()
            raise
        self._asked, self._passed = None, proxy
        return connection


async def _reached(proxy: Proxy) -> socket.socket:
    try:
        return await dial(proxy.host, proxy.port)
    except OSError as failure:
        raise proxy.error("failed", "is not reachable") from failure


async def _ask(proxy: Proxy, connection: socket.socket, place: str) -> None:
    # A proxy may refuse before it has read all.
    with suppress(OSError):
        await asyncio.get_running_loop().sock_sendall(connection, _request(proxy, place))
    answer = _Answer(proxy, connection)
    status = await answer.next_status()
    while status < 200 and status != 101:
        await answer.read_headers()
        status = await answer.next_status()
    if 200 <= status <= 299:
        await answer.read_headers()
        return
    # It counts, however its headers end.
    with suppress(ProxyError, asyncio.TimeoutError):
        await asyncio.wait_for(answer.read_headers(), PROXY_HEADERS_WITHIN_S)
    asked = _RETRY_AFTER.search(answer.head)
    wait_s = retry_after_of(asked[1].decode().strip()) if asked is not None and may_pass(status) else None
    raise proxy.error("failed", f"answered with {status}", status, wait_s)


class _Answer:
    """What a proxy says to CONNECT. What follows it is the relay's."""

    def __init__(self, proxy: Proxy, connection: socket.socket) -> None:
        self._proxy = proxy
        self._connection = connection
        # Of all heads together.
        self._bytes_left = MAX_PROXY_ANSWER_BYTES
        # As far as it was read.
        self.head = bytearray()

    async def next_status(self) -> int:
        """Begins the next head. Raises ProxyError."""
        self.head.clear()
        await self._read(_STATUS_LINE.match)
        line = _STATUS_LINE.match(self.head)
        assert line is not None
        return int(line[1])

    async def read_headers(self) -> None:
        """To the end of the head. Raises ProxyError."""
        await self._read(lambda head: head.endswith((b"\n\r\n", b"\n\n")))

    async def _read(self, is_enough: Callable[[bytes], object]) -> None:
        while not is_enough(self.head):
            byte = await _next_byte(self._connection)
            if not byte:
                raise self._proxy.error("failed", "ended the connection")
            self.head += byte
            self._bytes_left -= 1
            if self._bytes_left < 0 or not _may_be_http(self.head):
                raise self._proxy.error("no_http", "does not speak HTTP")


async def _next_byte(connection: socket.socket) -> bytes:
    """Empty once the connection has ended."""
    try:
        return await asyncio.get_running_loop().sock_recv(connection, 1)
    except OSError:
        return b""


def _request(proxy: Proxy, place: str) -> bytes:
    authorization = "" if proxy.authorization is None else f"Proxy-Authorization: {proxy.authorization}\r\n"
    return f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{authorization}\r\n".encode()


def _may_be_http(head: bytes) -> bool:
    """head: as far as it was read."""
    return bool(_STATUS_LINE.match(head)) if b"\n" in head else b"HTTP/1.".startswith(head[:7])
