"""Small JSON look-ups over HTTP, off the event loop, by the standard library alone."""

import asyncio
import contextlib
import http.client
import re
import socket
import threading
import urllib.error
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.request import OpenerDirector

from .http_opener import ShownRequest, http_opener
from .limits import LOOK_UPS_AT_ONCE, MAX_LOOK_UP_BYTES
from .network_errors import NotHttp
from .said_text import said_text
from .strict_json import members_of, parse_json
from .tunnel import Tunnel
from .within import within

_CUT_STATUS = re.compile(r"\s*|HTTP/1\.[0-9]( [0-9]{0,3})?")


@dataclass(frozen=True)
class Answer:
    status: int
    # The members of the JSON object; empty for anything else.
    members: Mapping[str, Any]
    # By their names in lower case.
    headers: Mapping[str, str] = field(default_factory=dict)


class HttpClient:
    """At most LOOK_UPS_AT_ONCE at once; the others wait, in order."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """environment: names the proxies."""
        self._environment = environment
        self._opener = http_opener()
        self._turns = asyncio.Semaphore(LOOK_UPS_AT_ONCE)
        self._under_way: set[_LookUp] = set()
        self._has_stopped = False

    async def get(self, url: str, timeout_s: float) -> Answer:
        """Any answer, its wait for its turn included in the time. Raises OSError or asyncio.TimeoutError."""
        return await self._asked(self._look_up(url, None, timeout_s, MAX_LOOK_UP_BYTES), timeout_s)

    async def post(self, url: str, body: str, timeout_s: float, max_bytes: int) -> Answer:
        """The same of JSON that is posted. max_bytes: so much of the answer is read."""
        return await self._asked(self._look_up(url, body, timeout_s, max_bytes), timeout_s)

    def stop(self) -> None:
        self._has_stopped = True
        for look_up in self._under_way:
            look_up.end()

    def _look_up(self, url: str, body: str | None, timeout_s: float, max_bytes: int) -> "_LookUp":
        return _LookUp(self._opener, Tunnel(url, self._environment), url, body, timeout_s, max_bytes)

    async def _asked(self, look_up: "_LookUp", timeout_s: float) -> Answer:
        try:
            return await within(self._answer_to(look_up), timeout_s)
        except asyncio.TimeoutError as silence:
            raise look_up.tunnel.silence or silence

    async def _answer_to(self, look_up: "_LookUp") -> Answer:
        await self._turns.acquire()
        if self._has_stopped:
            self._turns.release()
            raise OSError("the connector is closed")
        self._under_way.add(look_up)
        try:
            await look_up.open_tunnel()
        except BaseException:
            self._ended(look_up)
            if self._has_stopped:
                raise OSError("the connector is closed") from None
            raise
        outcome = look_up.start()
        # Its turn lasts as long as its thread: who gives up on it ends it, and does not pass its turn on before.
        outcome.add_done_callback(lambda _: self._ended(look_up))
        try:
            answer = await asyncio.shield(outcome)
        finally:
            look_up.end()
        if isinstance(answer, OSError):
            raise look_up.tunnel.failure(answer)
        return answer

    def _ended(self, look_up: "_LookUp") -> None:
        self._under_way.discard(look_up)
        self._turns.release()


class _LookUp:
    """One request, in a thread for which nobody waits, not even the end of the interpreter.

    The timeout of a socket is one of each read: without an end from outside, who sends a byte a second keeps it.
    """

    def __init__(
        self, opener: OpenerDirector, tunnel: Tunnel, url: str, body: str | None, timeout_s: float, max_bytes: int
    ) -> None:
        self.tunnel = tunnel
        self._opener = opener
        self._request = ShownRequest(url, self._connected, body)
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._opening: asyncio.Task[Any] | None = None
        self._socket: socket.socket | None = None
        self._has_ended = False

    async def open_tunnel(self) -> None:
        """Raises OSError. `end` cancels it."""
        self._opening = asyncio.current_task()
        self._request.tunnel = await self.tunnel.open()
        self._opening = None

    def start(self) -> "asyncio.Future[Answer | OSError]":
        """Any answer, or why there is none, once the thread has ended."""
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[Answer | OSError] = loop.create_future()

        def run() -> None:
            found = self._outcome()
            # The loop may have been closed meanwhile.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(outcome.set_result, found)

        threading.Thread(target=run, name="agent-relay-look-up", daemon=True).start()
        return outcome

    def end(self) -> None:
        """Whatever it reads, or waits for, nothing more comes."""
        self._has_ended = True
        if self._opening is not None:
            self._opening.cancel()
        if self._socket is not None:
            # Below TLS, whose state is its thread's.
            with contextlib.suppress(OSError):
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def _connected(self, connected: socket.socket) -> None:
        self._socket = connected
        if self._has_ended:
            raise OSError("given up")

    def _outcome(self) -> Answer | OSError:
        try:
            return self._get()
        except OSError as error:
            # urllib wraps what a connection failed with.
            reason = getattr(error, "reason", None)
            return reason if isinstance(reason, OSError) else error
        except http.client.BadStatusLine as answer:
            return _cut() if _is_cut(str(answer)) else NotHttp("no status line")
        except Exception as broken:
            # A server that speaks something else than HTTP: http.client has errors of its own for it, with what it said.
            return OSError(said_text(str(broken)))

    def _get(self) -> Answer:
        try:
            with self._opener.open(self._request, timeout=self._timeout_s) as response:
                return _answer(response.status, response, self._max_bytes)
        except urllib.error.HTTPError as refusal:
            with refusal:
                return _answer(refusal.code, refusal, self._max_bytes)


def _answer(status: int, response: Any, max_bytes: int) -> Answer:
    # The first one of a name counts. The library keeps blanks at the end of a value.
    headers = {name.lower(): value.strip(" \t") for name, value in reversed(response.headers.items())}
    body = response.read(max_bytes)
    # To the library, a body ends where the connection does.
    if len(body) < max_bytes and response.length:
        raise _cut()
    return Answer(status, _members(body), headers)


def _cut() -> OSError:
    return ConnectionResetError("the answer was cut")


def _is_cut(status_line: str) -> bool:
    return "HTTP/1.".startswith(status_line) or _CUT_STATUS.fullmatch(status_line) is not None


def _members(body: bytes) -> Mapping[str, Any]:
    try:
        return members_of(parse_json(body.decode()))
    except ValueError:
        return {}
