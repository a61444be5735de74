"""The parts of a connector, from start to end."""

import asyncio

from .address import relay_address
from .background import Background, log
from .clock import Clock
from .connection import Connection, ConnectionEnd, ConnectionOptions
from .conversations import Conversations
from .credentials.own_credential import OwnCredential
from .delivery_judge import DeliveryJudge, Replier
from .emitter import Emitter
from .error_catalogue import CONNECTOR_ERRORS, known_code
from .errors import RelayError
from .frames import AckFrame, DeliverFrame, ErrorFrame, Frame, HelloFrame
from .inbox import Inbox
from .options import ConnectorOptions
from .own_envelopes import OwnEnvelopes
from .peers import Peers
from .receipts.session_records import SessionRecords
from .reconnector import Reconnector
from .replay_guard import ReplayGuard
from .sealing.sealing_keys import SealingKeys
from .send_queue import SendQueue
from .signer import Signer
from .types import ConnectorState, Notice, Warning

# What another credential can mend.
_CREDENTIAL_ENDS = ("key_revoked", "invalid_credential")


class Lifecycle:
    """Registers the agent, hands frames to the parts that they are for, and ends all parts together."""

    def __init__(self, options: ConnectorOptions, replier: Replier) -> None:
        """Does no I/O. Raises `invalid_key`, `invalid_issuer`."""
        address = relay_address(options.url)
        clock = Clock()
        signer = Signer(options.key, clock)
        background = self._background = Background()
        self.emitter = Emitter()
        self.sessions = SessionRecords()
        self.conversations = Conversations()
        self.peers = Peers(options, address, clock, background)
        self._guard = ReplayGuard(clock, options.max_delivery_age_s)
        judge = DeliveryJudge(
            agent=options.agent,
            verifier=self.peers.verifier,
            replay_guard=self._guard,
            require_verified=options.require_verified,
            sealing_keys=SealingKeys(options.sealing_keys),
            sessions=self.sessions,
            replier=replier,
        )
        self.inbox = Inbox(judge, self.conversations, self.emitter, options.max_inbox, background)
        self._credential = self._own_credential(options, signer, clock)
        self._queue = SendQueue(signer, clock, options.max_pending, self._check_registration, background)
        self.envelopes = OwnEnvelopes(
            options.agent, address.host, signer, self._credential, self._queue, self.sessions, self.peers
        )
        connection = ConnectionOptions(address.websocket, clock, self.envelopes.presence)
        self._reconnector = Reconnector(lambda events: Connection(connection, events), self, background)
        self._agent = options.agent
        self._started: asyncio.Future[None] | None = None
        self._ended_by: RelayError | None = None
        self._shutting_down: asyncio.Task[None] | None = None
        self.state = ConnectorState("idle")

    async def start(self) -> None:
        """Returns once the agent is registered. Raises the RelayError that ended the connector."""
        if self._ended_by is not None:
            raise self._ended_by
        if self._started is None:
            self._started = asyncio.get_running_loop().create_future()
            self._background.spawn(self._begin())
        try:
            await asyncio.shield(self._started)
        except asyncio.CancelledError:
            await self.close()
            raise

    async def close(self) -> None:
        self._stop(None)
        assert self._shutting_down is not None
        await asyncio.shield(self._shutting_down)

    async def _begin(self) -> None:
        self._set_state(ConnectorState("connecting"))
        try:
            if self._credential is not None:
                await self._credential.start()
        except RelayError as error:
            self._stop(error)
        else:
            self._reconnector.start()

    def _stop(self, error: RelayError | None) -> None:
        if self._ended_by is not None:
            return
        self._ended_by = error or RelayError("closed")
        if self._credential is not None:
            self._credential.stop()
        self.peers.stop()
        self._queue.end(self._ended_by)
        self.conversations.end(self._ended_by)
        self.inbox.end(error)
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
        if not self._guard.can_judge:
            entry = CONNECTOR_ERRORS["clock_untrusted"]
            self.emitter.emit("warning", Warning("clock_untrusted", entry.message, entry.hint))

    def online(self, connection: Connection) -> None:
        self._queue.resume(connection)
        if self._started is not None and not self._started.done():
            self._started.set_result(None)
        if self.state.status != "online":
            self._set_state(ConnectorState("online"))

    def offline(self, end: ConnectionEnd, retry_in_s: float) -> None:
        self._queue.pause()
        self._set_state(ConnectorState("reconnecting", end.reason, retry_in_s, end.close_code, end.cause))
        why = end.cause or f"the connection ended, {end.close_code}"
        log.warning("%s is not connected (%s): trying again in %.1f s", self._agent, why, retry_in_s)

    def received(self, frame: Frame) -> None:
        if isinstance(frame, AckFrame):
            self._queue.acknowledge(frame)
        elif isinstance(frame, DeliverFrame):
            self.inbox.receive(frame)
        elif isinstance(frame, Notice):
            self.emitter.emit("notice", frame)
        elif isinstance(frame, ErrorFrame) and not self._queue.refuse(frame) and frame.envelope_id is None:
            error = RelayError(
                known_code(frame.code), frame.message, frame.hint, retry=frame.retry, retry_after=frame.retry_after_s
            )
            self.emitter.emit("error", error)

    def presence_refused(self, error: RelayError) -> None:
        if error.code == "invalid_credential" and self._credential is not None:
            self._credential.refused()
        self.emitter.emit("error", error)

    def may_return(self, error: RelayError) -> bool:
        return error.code in _CREDENTIAL_ENDS and self._credential is not None and self._credential.is_renewable

    async def has_changed(self) -> bool:
        return self._credential is not None and await self._credential.has_another()

    def ended(self, error: RelayError) -> None:
        self._stop(error)

    def _own_credential(self, options: ConnectorOptions, signer: Signer, clock: Clock) -> OwnCredential | None:
        if options.credential is None:
            return None
        return OwnCredential(
            options.credential,
            options.agent,
            clock,
            accept=signer.take_id_of,
            renewed=lambda: self._reconnector.register_again(),
            failed=lambda error: self.emitter.emit("error", error),
            background=self._background,
        )

    def _check_registration(self) -> None:
        self._reconnector.check_registration()

    def _set_state(self, state: ConnectorState) -> None:
        self.state = state
        self.emitter.emit("state", state)
