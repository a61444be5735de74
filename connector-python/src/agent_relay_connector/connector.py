"""One agent on the relay."""

import asyncio
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, overload

from .conversations import REPLY, Question, task_of_reply
from .emitter import EventName, Listener
from .errors import RelayError
from .frames import AckFrame
from .lifecycle import Lifecycle
from .limits import MAX_DELIVERY_AGE_S, MAX_INBOX, MAX_PENDING, SEND_TIMEOUT_S
from .options import ConnectorOptions, Identity, check_options, identity_of_file, trust_of
from .own_envelopes import present
from .receipts.contract import Receipt
from .types import (
    Accepted,
    AcceptedSession,
    AgentKey,
    ConnectorState,
    CredentialSource,
    Delivery,
    JsonObject,
    Notice,
    Presence,
    Trust,
    TrustedKey,
    Warning,
)


class Connector:
    """Registers an agent, keeps it present, renews its credential, and reconnects whenever the connection is lost.

    Only `close`, a refused or revoked key, a credential that ended without another, another connection that registers
    the same agent, or a close for what it sent (1003, 1007, 1008, 1009) end it for good. Use it with `async with`.

    url: base address of the relay (http, https), or of its websocket (ws, wss; path /ws when there is none). key_file:
    path of a key file, which names the agent; or else agent (`agent://name`) and key. credential: what an issuer
    signed for the key: a token, or a coroutine function that gives the present one. Without one, the relay's keys file
    lists the key. sealing_keys: X25519 keys that others seal payloads to, private halves in base64url: the one of the
    credential first, then those before it. A key file may have both, and is read again for each renewal. trust: whom
    to believe; or only keys of other agents, by agent id. require_verified: drop deliveries that are not `agent`, nor
    `gateway` by a key of `trust.gateways`. max_delivery_age: seconds; drop deliveries whose `ts` is farther than this
    from this machine's clock, which the relay corrects by at most 5 minutes; 0 takes any. seal: `required` seals every
    message; texts of sessions stay readable. max_pending: sends that may be unsettled at once. max_inbox: deliveries
    that may wait to be read; one more drops the oldest.

    Does no I/O but reading the key file. Raises ValueError for options that can never work, and RelayError
    `invalid_key`, `invalid_credential` or `invalid_issuer`.
    """

    def __init__(
        self,
        url: str,
        *,
        key_file: str | None = None,
        agent: str | None = None,
        key: AgentKey | None = None,
        credential: CredentialSource | None = None,
        sealing_keys: Sequence[str] = (),
        trust: Trust | Mapping[str, Sequence[TrustedKey]] | None = None,
        require_verified: bool = False,
        max_delivery_age: float = MAX_DELIVERY_AGE_S,
        seal: Literal["required"] | None = None,
        max_pending: int = MAX_PENDING,
        max_inbox: int = MAX_INBOX,
    ) -> None:
        if key_file is not None:
            identity = identity_of_file(key_file)
        elif agent is not None and key is not None:
            identity = Identity(agent, key, credential, sealing_keys, ())
        else:
            raise ValueError("give key_file, or agent and key")
        options = ConnectorOptions(
            url=url,
            agent=identity.agent,
            key=identity.key,
            credential=identity.credential,
            sealing_keys=identity.sealing_keys,
            trust=trust_of(trust, identity.trusted_issuers),
            require_verified=require_verified,
            max_delivery_age_s=max_delivery_age,
            seal=seal,
            max_pending=max_pending,
            max_inbox=max_inbox,
        )
        check_options(options)
        # `agent://name`.
        self.agent = identity.agent
        self._seals_all = seal == "required"
        self._life = Lifecycle(options, self._reply)

    @property
    def state(self) -> ConnectorState:
        return self._life.state

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many deliveries were dropped for what they are, by the code of the `error` event that reported each."""
        return self._life.inbox.dropped

    async def start(self) -> None:
        """Connects; returns once the agent is registered, however long that takes (`asyncio.wait_for` bounds it).

        Raises the RelayError that ended the connector: the refusal of the register, `invalid_credential`, `closed`.
        Cancelled, it closes the connector.
        """
        await self._life.start()

    async def close(self) -> None:
        """Ends the connection. Sends without answer raise `closed`. Returns when the socket is gone."""
        await self._life.close()

    async def __aenter__(self) -> "Connector":
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    def __aiter__(self) -> AsyncGenerator[Delivery, None]:
        """Deliveries, those of one sender in the order in which they came, each to one reader.

        Those before the first read are kept, unless there is a listener of `delivery`. Ends with the connector:
        normally after `close`, else by raising the RelayError that ended it.
        """
        return self._life.inbox.read()

    async def send(
        self,
        to: str,
        payload: JsonObject,
        *,
        type: str = "message.send",
        task_id: str | None = None,
        seal: bool = False,
        timeout: float = SEND_TIMEOUT_S,
    ) -> Accepted:
        """Sends a message. Returns when the relay has accepted it; `delivery` says whether the target got it.

        While there is no connection it waits. Sends to one target arrive in the order of the calls, except one that the
        relay refused for the moment while later ones were in flight: where that matters, await each.

        payload: a JSON object, at most 32 levels deep; with the envelope around it at most 32768 bytes, sealed at most
        23000 bytes of JSON. type: `message.send`, or a kind of your own (`message.` and 1–32 of a–z 0–9 _, a letter
        first). task_id: 1–128 characters. seal: let nobody but the recipient read it; needs a pinned issuer of the
        recipient. timeout: seconds from the call.

        Raises RelayError: `queue_full`, `timeout`, `outcome_unknown`, `frame_too_large`, `invalid_envelope`,
        `recipient_unverified` of what is sealed, a refusal of the relay, or what ended the connector.
        """
        content = present(type=type, to=to, task_id=task_id, payload=payload)
        return _accepted(await self._life.envelopes.message(content, seal or self._seals_all, timeout))

    async def ask(
        self,
        to: str,
        payload: JsonObject,
        *,
        type: str = "message.send",
        seal: bool = False,
        timeout: float = SEND_TIMEOUT_S,
    ) -> Delivery:
        """Sends a question and returns the delivery of its reply, which is then in no iteration and in no event.

        Only a `message.reply` of the asked agent counts, and to a sealed question a sealed one. timeout: seconds from
        the call, for both. Raises RelayError as `send` does; `target_not_online` when the target was not online;
        `timeout` with outcome `unknown` when it was, and no reply came.
        """
        deadline = time.monotonic() + timeout
        reply: asyncio.Future[Delivery] = asyncio.get_running_loop().create_future()
        reply.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        question = Question(str(uuid.uuid4()), to, seal or self._seals_all, reply)
        self._life.conversations.ask(question)
        try:
            accepted = await self.send(
                to, payload, type=type, task_id=question.task_id, seal=seal, timeout=timeout
            )
            # The first delivery of what turns out to be a duplicate may have reached the target.
            if not accepted.delivery.can_deliver_realtime and not accepted.duplicate:
                raise RelayError("target_not_online", envelope_id=accepted.envelope_id)
            return await asyncio.wait_for(reply, max(0.0, deadline - time.monotonic()))
        except asyncio.TimeoutError:
            raise RelayError("timeout", "No reply came in time.", outcome="unknown") from None
        finally:
            self._life.conversations.forget(question)

    async def request_session(
        self,
        to: str,
        purpose: str,
        *,
        ttl_minutes: int | None = None,
        intro: str | None = None,
        scope: str | None = None,
        expected_frequency: str | None = None,
        timeout: float = SEND_TIMEOUT_S,
    ) -> AcceptedSession:
        """Requests a session. The decision comes as a delivery of type `session.approve` or `session.reject`.

        Characters: purpose 1–500, intro and scope at most 1000, expected_frequency at most 200. ttl_minutes: 5–1440,
        60 when left out. Raises RelayError as `send` does.
        """
        payload = present(
            purpose=purpose,
            ttl_minutes=ttl_minutes,
            intro=intro,
            scope=scope,
            expected_frequency=expected_frequency,
        )
        content = {"type": "session.request", "to": to, "payload": payload}
        return _accepted_session(await self._life.envelopes.session(content, timeout))

    async def approve(self, session_id: str, to: str, *, timeout: float = SEND_TIMEOUT_S) -> AcceptedSession:
        """Approves a session. to: who requested it. Raises RelayError as `send` does."""
        return _accepted_session(await self._life.envelopes.decision("approve", session_id, to, None, timeout))

    async def reject(
        self, session_id: str, to: str, reason: str | None = None, *, timeout: float = SEND_TIMEOUT_S
    ) -> AcceptedSession:
        """Rejects a session. to: who requested it. reason: at most 500 characters. Raises RelayError as `send` does."""
        return _accepted_session(await self._life.envelopes.decision("reject", session_id, to, reason, timeout))

    def receipt(self, session_id: str) -> Receipt:
        """What shows anybody that a session was requested and decided: `verify_receipt` checks it without a relay.

        Of the newest 1000 sessions, whose two envelopes this connector signed or verified. Raises
        `receipt_incomplete`, with what is missing.
        """
        return self._life.sessions.receipt(session_id)

    async def check_online(self, agent: str) -> Presence:
        """Whether an agent can be reached now.

        Raises RelayError: `unreachable`, `rate_limited`, a refusal of the relay.
        """
        return await self._life.peers.presence_of(agent)

    async def wait_online(self, agent: str, *, timeout: float = SEND_TIMEOUT_S) -> Presence:
        """Returns when an agent can be reached.

        Raises RelayError: `timeout` after so many seconds, a refusal that lasts.
        """
        return await self._life.peers.wait_online(agent, timeout)

    @overload
    def on(self, event: Literal["delivery"], listener: Callable[[Delivery], object]) -> Callable[[], None]: ...
    @overload
    def on(self, event: Literal["state"], listener: Callable[[ConnectorState], object]) -> Callable[[], None]: ...
    @overload
    def on(self, event: Literal["notice"], listener: Callable[[Notice], object]) -> Callable[[], None]: ...
    @overload
    def on(self, event: Literal["error"], listener: Callable[[RelayError], object]) -> Callable[[], None]: ...
    @overload
    def on(self, event: Literal["warning"], listener: Callable[[Warning], object]) -> Callable[[], None]: ...
    @overload
    def on(self, event: Literal["overflow"], listener: Callable[[int], object]) -> Callable[[], None]: ...

    def on(self, event: EventName, listener: Listener) -> Callable[[], None]:
        """Adds a listener, a function or a coroutine function. Returns a function that removes it.

        `error`: what belongs to no call: dropped deliveries, refused heartbeats, listeners that raised. `overflow`:
        how many deliveries were dropped because the inbox was full, since the start. Errors and warnings that nobody
        listens to are logged by the logger `agent_relay_connector`.
        """
        return self._life.emitter.on(event, listener)

    async def _reply(self, delivery: Delivery, payload: JsonObject, timeout: float) -> Accepted:
        if not delivery.type.startswith("message.") or delivery.type == REPLY:
            raise RelayError("not_answerable")
        task_id = task_of_reply(delivery)
        return await self.send(
            delivery.sender, payload, type=REPLY, task_id=task_id, seal=delivery.sealed, timeout=timeout
        )


def _accepted(ack: AckFrame) -> Accepted:
    return Accepted(ack.envelope_id, ack.delivery, ack.duplicate)


def _accepted_session(ack: AckFrame) -> AcceptedSession:
    return AcceptedSession(ack.envelope_id, ack.delivery, ack.duplicate, ack.session_id, ack.session_status)
