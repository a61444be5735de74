"""A connector from its start to its end."""

import asyncio
import math
from collections.abc import Callable

from .background import Background, log
from .connection import Connection, ConnectionEnd, ConnectionEvents, ConnectionOptions
from .errors import RelayError
from .frames import AckFrame, DeliverFrame, ErrorFrame, Frame, HelloFrame
from .network_errors import unreachable
from .options import ConnectorOptions
from .parts import Parts
from .reconnector import Reconnector
from .refusal import refused_by
from .types import ConnectorState, Notice
from .warnings import Warnings

# What another credential can mend.
_CREDENTIAL_ENDS = ("key_revoked", "invalid_credential")


class Lifecycle:
    """Registers the agent, hands frames to the parts that they are for, and ends all parts together."""

    def __init__(self, options: ConnectorOptions) -> None:
        """Does no I/O. Raises `invalid_key`, `invalid_issuer`."""
        self._background = Background()
        self.parts = Parts(
            options,
            self._background,
            not_registered=lambda: self._reconnector.check_registration(),
            renewed=lambda: self._reconnector.register_again(),
            ended=self._stop,
        )
        self._reconnector = Reconnector(self._connection, self, self._background)
        self._warnings = Warnings(self.parts.emitter)
        self._agent = options.agent
        self._environment = options.environment
        self._start_timeout_s = options.start_timeout_s
        # The first one that it was used in.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started: asyncio.Future[None] | None = None
        self._ended_by: RelayError | None = None
        self._shutting_down: asyncio.Task[None] | None = None
        self.state = ConnectorState("idle")

    def check_loop(self) -> None:
        """Sockets, tasks and locks are of one event loop: in another one what waits for them would wait without end."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        if self._loop is not asyncio.get_running_loop():
            raise RuntimeError(
                "This connector belongs to the event loop that it was first used in. Make one for each asyncio.run()."
            )

    async def start(self, timeout_s: float | None = None) -> None:
        """Returns once the agent is registered. Raises the RelayError that ended the connector.

        timeout_s: in place of that of the options.
        """
        self.check_loop()
        timeout_s = self._start_timeout_s if timeout_s is None else timeout_s
        if self._ended_by is not None:
            raise self._ended_by
        loop = asyncio.get_running_loop()
        if self._started is None:
            self._started = loop.create_future()
            self._background.spawn(self._begin())
        first_start = self.parts.first_start
        first_start.is_endless |= timeout_s == math.inf
        timer: asyncio.TimerHandle | None = None
        if timeout_s is not None and timeout_s != math.inf:
            timer = loop.call_later(timeout_s, first_start.time_is_over)
        try:
            await asyncio.shield(self._started)
        except asyncio.CancelledError:
            await self.close()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    async def close(self) -> None:
        self.check_loop()
        self._stop(None)
        assert self._shutting_down is not None
        await asyncio.shield(self._shutting_down)

    def _connection(self, events: ConnectionEvents) -> Connection:
        parts = self.parts
        options = ConnectionOptions(parts.address.websocket, self._environment, parts.clock, parts.presence())
        return Connection(options, events)

    async def _begin(self) -> None:
        self._set_state(ConnectorState("connecting"))
        try:
            if self.parts.credential is not None:
                await self.parts.credential.start()
        except RelayError as error:
            self._stop(error)
        else:
            self._reconnector.start()

    async def _after_what_came_in(self, tell: Callable[[], None]) -> None:
        """Its senders were told that it was delivered. After a `close` meanwhile nothing more is told."""
        await self.parts.inbox.settled()
        if self._ended_by is None:
            tell()

    def _stop(self, error: RelayError | None) -> None:
        if self._ended_by is not None:
            return
        self._ended_by = error or RelayError("closed")
        self.parts.stop(error)
        if self._started is not None and not self._started.done():
            self._started.set_exception(self._ended_by)
            self._started.exception()
        self._set_state(ConnectorState("closed", cause=error))
        self._shutting_down = asyncio.create_task(self._shut_down())

    async def _shut_down(self) -> None:
        await self._reconnector.stop()
        await self._background.stop()

    # Of the reconnector.

    def greeted(self, hello: HelloFrame) -> None:
        self._warnings.compare_version(hello.connector_version)
        if not self.parts.guard.can_judge:
            self._warnings.clock_untrusted()

    def online(self, connection: Connection) -> None:
        self.parts.first_start.succeeded()
        self.parts.emitter.log_anew()
        self.parts.send_queue.resume(connection)
        self.parts.conversations.found()
        if self._started is not None and not self._started.done():
            self._started.set_result(None)
        if self.state.status != "online":
            self._set_state(ConnectorState("online"))

    def offline(self, end: ConnectionEnd, retry_in_s: float) -> None:
        self.parts.send_queue.pause()
        self.parts.conversations.lost()
        first_start = self.parts.first_start
        error = unreachable(self.parts.address.websocket, end.cause) if end.reason == "unreachable" else None
        if error is not None and first_start.is_ended_by(error):
            self._stop(error)
        else:
            self._set_state(ConnectorState("reconnecting", end.reason, retry_in_s, end.close_code, end.cause))
        if error is not None:
            first_start.unreachable(error)
            if self.parts.emitter.has_listeners("error"):
                return
        if self.state.status == "closed":
            return
        # Why no relay was reached is in the log already.
        why = (error and error.code) or end.cause or end.error or f"the connection ended, {end.close_code}"
        if self.parts.emitter.is_new(str(why)):
            log.warning("%s is not connected (%s): trying again in %.1f s", self._agent, why, retry_in_s)

    def received(self, frame: Frame) -> None:
        parts = self.parts
        if isinstance(frame, AckFrame):
            parts.send_queue.acknowledge(frame)
        elif isinstance(frame, DeliverFrame):
            parts.inbox.receive(frame)
        elif isinstance(frame, Notice) and frame.kind == "superseded":
            self._background.spawn(self._after_what_came_in(lambda: parts.emitter.emit("notice", frame)))
        elif isinstance(frame, Notice):
            parts.emitter.emit("notice", frame)
        elif isinstance(frame, ErrorFrame) and not parts.send_queue.refuse(frame) and frame.envelope_id is None:
            parts.failed(refused_by(frame))

    def presence_refused(self, error: RelayError) -> None:
        if error.code == "invalid_credential" and self.parts.credential is not None:
            self.parts.credential.refused()
        self.parts.failed(error)

    def may_return(self, error: RelayError) -> bool:
        credential = self.parts.credential
        is_renewable = credential is not None and credential.is_renewable
        return self.parts.first_start.may_pass(error) or (error.code in _CREDENTIAL_ENDS and is_renewable)

    async def has_changed(self, error: RelayError) -> bool | None:
        if self.parts.first_start.presents_again(error):
            return True
        return self.parts.credential is not None and await self.parts.credential.has_another()

    def ended(self, error: RelayError) -> None:
        self.parts.send_queue.pause()
        self._background.spawn(self._reconnector.stop())
        self._background.spawn(self._after_what_came_in(lambda: self._stop(error)))

    def _set_state(self, state: ConnectorState) -> None:
        """`closed` is the last: the reconnector stops a step of the loop after it, and may tell of an end meanwhile."""
        if self.state.status == "closed":
            return
        self.state = state
        self.parts.emitter.emit("state", state)
