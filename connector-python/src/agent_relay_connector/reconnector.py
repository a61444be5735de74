"""Keeps one registered connection."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from .backoff import backoff_s, jittered_s
from .background import Background
from .connection import Connection, ConnectionEnd, ConnectionEvents
from .errors import RelayError
from .frames import AckFrame, DeliverFrame, Frame, HelloFrame, asked_wait_s
from .limits import BACKOFF_CAP_S, DRAINING_CAP_S, MAX_RETIRED, RETIRED_S, RETRY_AFTER_CAP_S
from .network_errors import retry_after_s
from .types import Notice


class ReconnectorEvents(Protocol):
    def greeted(self, hello: HelloFrame) -> None: ...
    def online(self, connection: Connection) -> None:
        """From now on envelopes go out on this connection."""

    def offline(self, end: ConnectionEnd, retry_in_s: float) -> None:
        """There is no connection; another attempt follows."""

    def received(self, frame: Frame) -> None: ...
    def presence_refused(self, error: RelayError) -> None: ...
    def may_return(self, error: RelayError) -> bool:
        """True when another attempt after this error may help, though it ends a connection for good."""

    def has_changed(self, error: RelayError) -> Awaitable[bool | None]:
        """Before the attempt after such an error: False when nothing has changed, None when nobody could tell."""

    def ended(self, error: RelayError) -> None:
        """There will be no further attempt."""


class Reconnector:
    """When its pod drains, the next connection is registered before the old one is retired.

    A retired connection is read until the relay closes it: it may still bring envelopes whose senders were told that
    they were delivered.
    """

    def __init__(
        self,
        connect: Callable[[ConnectionEvents], Connection],
        events: ReconnectorEvents,
        background: Background,
    ) -> None:
        self._connect_with = connect
        self._events = events
        self._background = background
        # Of connections that have ended, or were retired.
        self._closings = Background()
        self._current: Connection | None = None
        self._next: Connection | None = None
        self._retired: dict[Connection, asyncio.TimerHandle] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._is_waiting = False
        self._due_at = 0.0
        # Until then an answer in the place of a relay asked to be left alone.
        self._away_until = 0.0
        self._attempt = 0
        self._online_at = 0.0
        # What ended the last connection, when only a change can help.
        self._barred_by: RelayError | None = None
        self._has_stopped = False

    def start(self) -> None:
        self._connect()

    async def stop(self) -> None:
        """Returns when all sockets are gone."""
        self._has_stopped = True
        for timer in (self._timer, *self._retired.values()):
            if timer is not None:
                timer.cancel()
        connections = [self._current, self._next, *self._retired]
        self._retired.clear()
        await asyncio.gather(*(connection.close() for connection in connections if connection is not None))
        await self._closings.finish()

    def check_registration(self) -> None:
        """Asks the relay at once whether the current connection still owns the agent."""
        if self._current is not None:
            self._current.check_registration()

    def register_again(self) -> None:
        """Presents a renewed credential: on the next connection, if any: this one would take the agent back."""
        connection = self._next or self._current
        if connection is not None:
            connection.register_again()

    # Of a connection.

    def greeted(self, hello: HelloFrame) -> None:
        self._events.greeted(hello)

    def registered(self, connection: Connection) -> None:
        if self._current is not None:
            self._retire(self._current)
        self._current = connection
        self._next = None
        self._online_at = time.monotonic()
        self._events.online(connection)

    def frame(self, connection: Connection, frame: Frame) -> None:
        is_current = connection is self._current
        if isinstance(frame, Notice) and frame.kind == "draining" and is_current:
            self._forget_attempts()
            asked_s = asked_wait_s(frame.members.get("reconnect_after_ms")) or 0
            self._reconnect_in(max(jittered_s(min(asked_s, DRAINING_CAP_S)), backoff_s(self._attempt)))
        # Of a retired connection only acks and deliveries count: its errors and notices are out of date.
        is_relevant = is_current or isinstance(frame, (AckFrame, DeliverFrame))
        if is_relevant and not self._is_own_takeover(frame):
            self._events.received(frame)

    def presence_refused(self, error: RelayError) -> None:
        self._events.presence_refused(error)

    def connection_ended(self, connection: Connection, end: ConnectionEnd) -> None:
        if self._has_stopped or connection not in (self._current, self._next, *self._retired):
            # It may end before the task that closes it has begun.
            return
        self._closings.spawn(connection.close())
        timer = self._retired.pop(connection, None)
        if timer is not None:
            timer.cancel()
            return
        is_superseded = end.error is not None and end.error.code == "superseded"
        is_replaced = connection is self._current and self._next is not None and is_superseded
        if end.error is not None and not is_replaced:
            if not self._events.may_return(end.error):
                self._events.ended(end.error)
                return
            self._barred_by = end.error
        if connection is self._next:
            self._next = None
        else:
            self._lost_current()
        now = time.monotonic()
        self._away_until = max(self._away_until, now + jittered_s(retry_after_s(end.cause) or 0, RETRY_AFTER_CAP_S))
        wait_s = max(backoff_s(self._attempt), self._away_until - now)
        self._forget_wait_over(wait_s)
        retry_in_s = self._reconnect_in(wait_s)
        if self._current is None and not is_replaced:
            self._events.offline(end, retry_in_s)

    def _is_own_takeover(self, frame: Frame) -> bool:
        """The notice that this connector's next connection has superseded its current one."""
        return isinstance(frame, Notice) and frame.kind == "superseded" and self._next is not None

    def _attempt_now(self) -> None:
        if self._barred_by is None:
            self._connect()
        else:
            self._background.spawn(self._attempt_changed(self._barred_by))

    async def _attempt_changed(self, error: RelayError) -> None:
        has_changed = await self._events.has_changed(error)
        self._is_waiting = False
        if self._has_stopped:
            return
        if has_changed is None:
            self._reconnect_in(backoff_s(self._attempt))
            return
        self._barred_by = None
        if has_changed:
            self._connect()
        else:
            self._events.ended(error)

    def _connect(self) -> None:
        self._is_waiting = False
        self._next = self._connect_with(self)
        self._next.open()

    def _lost_current(self) -> None:
        self._current = None
        self._forget_attempts()

    def _forget_attempts(self) -> None:
        """The backoff starts again only after a connection that lasted.

        A relay that loses or drains connections at once is asked less often.
        """
        if time.monotonic() - self._online_at >= BACKOFF_CAP_S:
            self._attempt = 0

    def _forget_wait_over(self, wait_s: float) -> None:
        """What a relay that drains asked for holds while its connection does: whoever lost it waits as others do."""
        if self._is_waiting and self._timer is not None and self._due_at > time.monotonic() + wait_s:
            self._timer.cancel()
            self._is_waiting = False

    def _reconnect_in(self, wait_s: float) -> float:
        """Schedules the next attempt, unless one is scheduled or under way. Returns the seconds until it."""
        if not self._is_waiting and self._next is None and not self._has_stopped:
            self._attempt += 1
            self._is_waiting = True
            self._due_at = time.monotonic() + wait_s
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._attempt_now)
        return max(0.0, self._due_at - time.monotonic())

    def _retire(self, connection: Connection) -> None:
        if len(self._retired) == MAX_RETIRED:
            self._give_up(next(iter(self._retired)))
        self._retired[connection] = asyncio.get_running_loop().call_later(RETIRED_S, self._give_up, connection)

    def _give_up(self, retired: Connection) -> None:
        self._retired.pop(retired).cancel()
        self._closings.spawn(retired.close())
