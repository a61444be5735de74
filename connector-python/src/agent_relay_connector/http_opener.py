"""Requests of the standard library that show their sockets, so that another thread can end them."""

import http.client
import io
import socket
import ssl
import urllib.request
from collections.abc import Callable
from functools import partial
from typing import Any

from .version import VERSION

Connected = Callable[[socket.socket], None]
# Heads before the answer that are read over, such as 103.
_MAX_EARLY_HEADS = 16


class ShownRequest(urllib.request.Request):
    """connected: called with its socket before anything is sent. What it raises ends the request.
    body: JSON that is posted; None for a GET."""

    def __init__(self, url: str, connected: Connected, body: str | None) -> None:
        # Some edges refuse the name that the library gives.
        agent = f"agent-relay-connector-python/{VERSION}"
        headers = {"accept": "application/json, application/problem+json", "user-agent": agent}
        if body is not None:
            headers["content-type"] = "application/json"
        super().__init__(url, None if body is None else body.encode(), headers)
        self.connected = connected
        # The connection to the host, without TLS.
        self.tunnel: socket.socket


def http_opener() -> urllib.request.OpenerDirector:
    """Opens requests of this module. What a relay answers, it answers itself: a redirect is an answer.

    It ignores the proxies of the environment: a request brings its tunnel.
    """
    return urllib.request.build_opener(urllib.request.ProxyHandler({}), _NoRedirect, _Http, _Https)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def http_error_302(self, *_: Any, **__: Any) -> None:
        """What the library would make of a Location may raise anything."""

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: Any) -> http.client.HTTPResponse:
        return self.do_open(partial(_HttpConnection, req), req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: Any) -> http.client.HTTPResponse:
        return self.do_open(partial(_HttpsConnection, req), req)


class _Lines(io.BufferedReader):
    def readline(self, size: int | None = -1) -> bytes:
        """To the library, a head ends where the connection does."""
        line = super().readline(size)
        if not line:
            raise ConnectionResetError("the answer was cut")
        return line


class _Response(http.client.HTTPResponse):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fp: Any = _Lines(self.fp.detach())

    def _read_status(self) -> tuple[str, int, str]:
        """The library reads over 100 alone."""
        told: tuple[str, int, str] = super()._read_status()  # type: ignore[misc]
        for _ in range(_MAX_EARLY_HEADS):
            if not 102 <= told[1] <= 199:
                break
            http.client.parse_headers(self.fp)
            told = super()._read_status()  # type: ignore[misc]
        return told


class _HttpConnection(http.client.HTTPConnection):
    response_class = _Response

    def __init__(self, request: ShownRequest, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # No certificate has a dot at the end of a name, nor does every machine know localhost with one.
        self.host = self.host.removesuffix(".")
        self._request = request

    def connect(self) -> None:
        tunnel = self._request.tunnel
        tunnel.settimeout(self.timeout)
        self.sock = self._through(tunnel)
        self._request.connected(self.sock)

    def _through(self, tunnel: socket.socket) -> socket.socket:
        return tunnel


class _HttpsConnection(_HttpConnection, http.client.HTTPSConnection):
    """The same over TLS. Of a handshake the timeout is one of the whole."""

    def _through(self, tunnel: socket.socket) -> socket.socket:
        return ssl.create_default_context().wrap_socket(tunnel, server_hostname=self.host)
