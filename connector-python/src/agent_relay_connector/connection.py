"""One connection of the agent: hello, register, then heartbeats until its end."""

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from .backoff import jittered_s
from .background import Background
from .clock import Clock
from .errors import RelayError, final_close
from .frames import AckFrame, ErrorFrame, Frame, HelloFrame
from .keepalive import Keepalive
from .limits import ANSWER_WITHIN_S, HELLO_WITHIN_S, REGISTER_WITHIN_S
from .presence import Presence, PresenceType, SignedPresence
from .refusal import refused_by
from .signer import Signer
from .types import Notice
from .websocket import NO_CODE, Websocket

_KEY_REFUSALS = ("unknown_key", "bad_signature", "key_not_allowed")
_MOMENTARY = ("unavailable", "rate_limited", "over_capacity", "internal_error")


@dataclass(frozen=True)
class ConnectionEnd:
    """Why a connection ended."""

    reason: Literal["unreachable", "lost"]
    close_code: int
    # Set when the connector must not reconnect.
    error: RelayError | None
    # What an attempt failed with.
    cause: Exception | None


class ConnectionEvents(Protocol):
    def greeted(self, hello: HelloFrame) -> None: ...
    def registered(self, connection: "Connection") -> None: ...
    def frame(self, connection: "Connection", frame: Frame) -> None:
        """Every frame but `hello` and the answers to registers and heartbeats."""

    def presence_refused(self, error: RelayError) -> None:
        """A heartbeat was refused, or the register of a renewed credential; the connection stays."""

    def connection_ended(self, connection: "Connection", end: ConnectionEnd) -> None:
        """Once, and not after `close`, which is then to be called."""


@dataclass(frozen=True)
class ConnectionOptions:
    url: str
    # Names the proxies.
    environment: Mapping[str, str]
    clock: Clock
    presence: Presence


class Connection:
    def __init__(self, options: ConnectionOptions, events: ConnectionEvents) -> None:
        self._options = options
        self._events = events
        self._socket = Websocket(options.url, self._receive, self._closed, options.environment)
        self._hello: HelloFrame | None = None
        self._keepalive: Keepalive | None = None
        self._timer: asyncio.TimerHandle | None = None
        # The register or heartbeat that has no answer yet.
        self._asked: SignedPresence | None = None
        # By time.monotonic(), as all times here.
        self._asked_at = 0.0
        self._opened_at = 0.0
        self._is_registered = False
        # The next to be sent is a register.
        self._must_register = True
        # Of registers and heartbeats that are being signed.
        self._signing = Background()
        # The clock was corrected since the last accepted register or heartbeat.
        self._is_clock_corrected = False
        self._has_ended = False

    @property
    def max_clock_skew_ms(self) -> float:
        """How old an envelope may be when the relay gets it. There is one after `hello`."""
        assert self._hello is not None
        return self._hello.max_clock_skew_ms

    @property
    def max_in_flight(self) -> int:
        """Envelopes without an answer behind which a heartbeat still comes in time."""
        assert self._hello is not None
        return self._hello.max_in_flight

    @property
    def signer(self) -> Signer:
        """What signs on this connection. There is one once it is registered."""
        return self._options.presence.signer

    def accepts(self, key_id: str) -> bool:
        """True for a key whose envelopes the relay takes on this connection now."""
        return self._options.presence.accepts(key_id)

    def open(self) -> None:
        self._opened_at = time.monotonic()
        self._wait(HELLO_WITHIN_S, self._unanswered)
        self._socket.open()

    def _unanswered(self) -> None:
        self._end(cause=self._socket.silence or TimeoutError("no hello of a relay within 5 s"))

    def send(self, text: str) -> None:
        if self._keepalive is not None:
            self._keepalive.request_sent()
        self._socket.send(text)

    def check_registration(self) -> None:
        """Asks the relay at once, by a heartbeat, whether this connection still owns the agent."""
        if self._keepalive is not None:
            self._keepalive.heartbeat_now()

    def register_again(self) -> None:
        """Presents the agent's renewed credential; envelopes go on meanwhile. Before `hello` there is no need."""
        if self._hello is None:
            return
        self._must_register = True
        self._send_presence()

    async def close(self) -> None:
        """Ends it without an event. Returns when the socket is gone."""
        self._fall_silent()
        await self._signing.stop()
        await self._socket.close()

    def _receive(self, frame: Frame) -> None:
        if self._has_ended:
            return
        if self._keepalive is not None:
            self._keepalive.frame_received()
            if isinstance(frame, (AckFrame, ErrorFrame)) and frame.envelope_id:
                self._keepalive.answered()
        if isinstance(frame, HelloFrame):
            self._greeted(frame)
        elif isinstance(frame, AckFrame) and self._is_answer(frame.envelope_id):
            self._presence_accepted()
        elif isinstance(frame, ErrorFrame) and self._is_answer(frame.envelope_id):
            self._presence_refused(frame)
        else:
            self._forward(frame)

    def _is_answer(self, envelope_id: str | None) -> bool:
        """To the last register or heartbeat."""
        return self._asked is not None and self._asked.id == envelope_id

    def _forward(self, frame: Frame) -> None:
        if isinstance(frame, ErrorFrame):
            # To what it is the answer is not known here; one that took longer would have ended the connection.
            self._measure(frame.server_time, time.monotonic() - ANSWER_WITHIN_S)
        self._events.frame(self, frame)
        # The close that follows may be lost on the way; reconnecting then would take the agent from its new connection.
        if isinstance(frame, Notice) and frame.kind == "superseded":
            self._end(error=final_close(4409))

    def _greeted(self, hello: HelloFrame) -> None:
        if self._hello is not None:
            return
        self._hello = hello
        self._measure(hello.server_time, self._opened_at)
        self._keepalive = Keepalive(hello.heartbeat_interval_s, self._send_presence, self._end)
        self._keepalive.start()
        self._events.greeted(hello)
        self._wait(REGISTER_WITHIN_S, self._end)
        self._send_presence()

    def _send_presence(self) -> None:
        """Sends a register until one is accepted, and for a renewed credential; heartbeats else."""
        self._signing.spawn(self._sign_presence())

    async def _sign_presence(self) -> None:
        assert self._hello is not None
        kind: PresenceType = "agent.register" if self._must_register else "agent.heartbeat"
        try:
            signed = await self._options.presence.sign(kind, self._hello.connection_id)
        except RelayError as error:
            return self._end(error=error)
        except Exception as fault:
            unsigned = RelayError("invalid_key", "A register or heartbeat could not be signed.", "__cause__ says why.")
            unsigned.__cause__ = fault
            return self._end(error=unsigned)
        if not self._has_ended:
            if self._timer is not None:
                self._timer.cancel()
            self._asked, self._asked_at = signed, time.monotonic()
            assert self._keepalive is not None
            self._keepalive.heartbeat_sent()
            self.send(signed.text)

    def _presence_accepted(self) -> None:
        presence = self._options.presence
        registration = None if self._asked is None else self._asked.registration
        self._asked = None
        self._is_clock_corrected = False
        if registration is not None:
            presence.accepted(registration)
            self._must_register = not presence.is_complete
        if registration is not None and self._must_register:
            self._send_presence()
            return
        if self._is_registered:
            return
        self._is_registered = True
        self._events.registered(self)

    def _presence_refused(self, frame: ErrorFrame) -> None:
        error = refused_by(frame)
        code = error.code
        registration = None if self._asked is None else self._asked.registration
        self._asked = None
        if code == "clock_skew" and frame.server_time is not None and not self._is_clock_corrected:
            self._is_clock_corrected = True
            self._measure(frame.server_time, self._asked_at)
            self._send_presence()
        elif code in _MOMENTARY:
            # A refused heartbeat is not repeated: the next one is soon enough, and every connection met the same
            # outage.
            if self._must_register:
                self._wait(jittered_s(frame.retry_after_s), self._send_presence)
        elif self._options.presence.dispenses_with(registration):
            self._send_presence()
        elif not self._is_registered:
            self._end(error=error)
        elif code == "not_registered":
            self._end(error=final_close(4409))
        elif code in _KEY_REFUSALS:
            self._end(error=final_close(4403))
        else:
            # What an earlier register made known still holds.
            self._must_register = False
            self._events.presence_refused(error)

    def _measure(self, server_time_ms: int | None, asked_at: float) -> None:
        if server_time_ms is not None:
            self._options.clock.measure(server_time_ms, time.monotonic() - asked_at)

    def _closed(self, code: int, cause: Exception | None) -> None:
        self._end(code, final_close(code), cause)

    def _end(
        self, close_code: int = NO_CODE, error: RelayError | None = None, cause: Exception | None = None
    ) -> None:
        if self._has_ended:
            return
        self._fall_silent()
        reason: Literal["unreachable", "lost"] = "unreachable" if self._hello is None else "lost"
        self._events.connection_ended(self, ConnectionEnd(reason, close_code, error, cause))

    def _fall_silent(self) -> None:
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        if self._keepalive is not None:
            self._keepalive.stop()

    def _wait(self, wait_s: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(wait_s, then)
