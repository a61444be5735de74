"""A connection through a proxy. Source: RFC 9110, section 9.3.6."""

import asyncio
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from .limits import MAX_PROXY_ANSWER_BYTES
from .proxy import Proxy, ProxyError, proxy_of, target_of

_STATUS_LINE = re.compile(rb"HTTP/1\.[0-9] ([0-9]{3})[ \r\n]")


class Tunnel:
    """The way to the host of an address, for one attempt."""

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        """environment: names the proxies. It is not read before `open`."""
        self._url = url
        self._environment = environment
        # Whose answer is awaited.
        self._asked: Proxy | None = None

    @property
    def silence(self) -> ProxyError | None:
        """What the attempt fails with if its time is over now; None while no proxy is waited for."""
        return None if self._asked is None else self._asked.error("failed", "does not answer")

    async def open(self) -> socket.socket | None:
        """None: no proxy is on the way. Raises ProxyError. Its caller bounds the time; cancelled, it leaves no socket."""
        proxy = self._asked = proxy_of(self._url, self._environment)
        if proxy is None:
            return None
        connection = await _reached(proxy)
        try:
            await _ask(proxy, connection, target_of(self._url).place)
        except BaseException:
            connection.close()
            raise
        self._asked = None
        return connection


async def _reached(proxy: Proxy) -> socket.socket:
    failure: Exception | None = None
    try:
        addresses = await asyncio.get_running_loop().getaddrinfo(proxy.host, proxy.port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, address in addresses:
            try:
                return await _dialled(socket.socket(family, kind, protocol), address)
            except OSError as error:
                failure = error
    except (OSError, UnicodeError) as error:
        failure = error
    raise proxy.error("failed", "is not reachable") from failure


async def _dialled(connection: socket.socket, address: Any) -> socket.socket:
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


async def _ask(proxy: Proxy, connection: socket.socket, place: str) -> None:
    # A proxy may refuse before it has read all.
    with suppress(OSError):
        await asyncio.get_running_loop().sock_sendall(connection, _request(proxy, place))
    answer = b""
    while not _is_open(proxy, answer):
        # What follows the answer is the relay's.
        byte = await _next_byte(connection)
        if not byte:
            raise proxy.error("failed", "ended the connection")
        answer += byte


async def _next_byte(connection: socket.socket) -> bytes:
    """Empty once the connection has ended."""
    try:
        return await asyncio.get_running_loop().sock_recv(connection, 1)
    except OSError:
        return b""


def _request(proxy: Proxy, place: str) -> bytes:
    authorization = "" if proxy.authorization is None else f"Proxy-Authorization: {proxy.authorization}\r\n"
    return f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{authorization}\r\n".encode()


def _is_open(proxy: Proxy, answer: bytes) -> bool:
    """answer: what came so far. Raises ProxyError for one that is not yes."""
    line, end, _ = answer.partition(b"\n")
    status_line = _STATUS_LINE.match(line + end)
    is_http = b"HTTP/1.".startswith(answer[:7]) and (status_line is not None or not end)
    if not is_http or len(answer) > MAX_PROXY_ANSWER_BYTES:
        raise proxy.error("no_http", "does not speak HTTP")
    if status_line is not None and not 200 <= (status := int(status_line[1])) <= 299:
        raise proxy.error("failed", f"answered with {status}", status)
    return answer.endswith((b"\n\r\n", b"\n\n"))
