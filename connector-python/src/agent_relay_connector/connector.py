"""One agent on the relay."""

import os
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Literal, overload

from .emitter import EventName, Listener
from .errors import RelayError
from .frames import AckFrame
from .given import AgentKey, CredentialSource, SealingKey, Trust, TrustedKey
from .lifecycle import Lifecycle
from .limits import MAX_DELIVERY_AGE_S, MAX_INBOX, MAX_PENDING, PRESENCE_TIMEOUT_S, SEND_TIMEOUT_S
from .message_options import MessageOptions
from .options import ConnectorOptions, check_options, identity_of, trust_of
from .own_envelopes import present
from .parts import Parts
from .receipts.contract import Receipt
from .types import Accepted, AcceptedSession, ConnectorState, Delivery, JsonObject, Notice, Presence, Warning


class Connector:
    """Registers an agent, keeps it present, renews its credential, and reconnects whenever the connection is lost.

    Only `close`, a refused or revoked key, a credential that ended without another, another connection that registers
    the same agent, or a close for what it sent (1003, 1007, 1008, 1009) end it for good. Use it with `async with`. It
    belongs to the event loop that it is first used in: each `asyncio.run()` needs its own.

    url: base address of the relay (http, https), or of its websocket (ws, wss; path /ws when there is none). key_file:
    path of a key file, which names the agent; or else agent (`agent://name`) and key. http_url: base
    address of the relay's HTTP side, where it is another one than that of url. proxy: False goes without the proxy that
    HTTPS_PROXY, HTTP_PROXY and NO_PROXY of the environment name. take_over: register although the agent is
    online elsewhere, or nobody tells whether it is, which ends that connection; else `superseded_elsewhere`, or
    `not_a_relay` where no relay answers over HTTP. start_timeout: seconds that a start may take, that of `async with` too;
    None waits for the relay however long it is away, `math.inf` also while something else answers in its place. credential: what an issuer signed for the key: a token, or a
    coroutine function that gives the present one, as CredentialWithKeys where its keys are others. Without one, the
    relay's keys file lists the key. sealing_keys: X25519 keys that others seal payloads to, private halves in
    base64url: the one of the credential first, then those before it. A key file may have both, and is read again for
    each renewal, with its keys. trust: whom to believe; or only keys of other agents, by agent id. accept_from: senders
    that the relay is to accept envelopes to this agent from, 50 at most, in place of those of the key file: agent ids,
    namespaces such as `agent://acme.*`, and `issuer:<name>` for all agents with a credential of that issuer; others get
    `not_accepted_by_target`, also while this agent is offline; None is everyone. require_verified:
    drop deliveries that are not `agent`, nor `gateway` by a key of `trust.gateways`. max_delivery_age: seconds; drop
    deliveries whose `ts` is farther than this from this machine's clock, which the relay corrects by at most 5 minutes;
    0 or inf takes any, so that after a new start whatever was ever signed can come again. seal: `required` seals every
    message; texts of sessions stay readable. max_pending: sends that may be unsettled, and questions that may be
    without a reply, at once. max_inbox: deliveries that may wait to be read; one more drops
    the oldest of the sender with the most.

    Does no I/O but reading the key file. Raises ValueError for options that can never work, and RelayError
    `invalid_key`, `invalid_credential` or `invalid_issuer`.
    """

    def __init__(
        self,
        url: str,
        *,
        key_file: str | os.PathLike[str] | None = None,
        agent: str | None = None,
        key: AgentKey | None = None,
        http_url: str | None = None,
        proxy: bool = True,
        take_over: bool = False,
        start_timeout: float | None = None,
        credential: CredentialSource | None = None,
        sealing_keys: Sequence[str | SealingKey] = (),
        trust: Trust | Mapping[str, Sequence[TrustedKey]] | None = None,
        accept_from: Sequence[str] | None = None,
        require_verified: bool = False,
        max_delivery_age: float = MAX_DELIVERY_AGE_S,
        seal: Literal["required"] | None = None,
        max_pending: int = MAX_PENDING,
        max_inbox: int = MAX_INBOX,
    ) -> None:
        identity = identity_of(key_file, agent, key, credential, sealing_keys)
        options = ConnectorOptions(
            url=url,
            http_url=http_url,
            agent=identity.agent,
            key=identity.key,
            proxy=proxy,
            take_over=take_over,
            start_timeout_s=start_timeout,
            credential=identity.credential,
            sealing_keys=identity.sealing_keys,
            trust=trust_of(trust, identity.trusted_issuers),
            accept_from=identity.accept_from if accept_from is None else accept_from,
            require_verified=require_verified,
            max_delivery_age_s=max_delivery_age,
            seal=seal,
            max_pending=max_pending,
            max_inbox=max_inbox,
        )
        check_options(options)
        # `agent://name`.
        self.agent = identity.agent
        self._life = Lifecycle(options)
        self._parts = self._life.parts

    @property
    def state(self) -> ConnectorState:
        return self._life.state

    @property
    def dropped(self) -> Mapping[str, int]:
        """How many deliveries were dropped for what they are, by the code of the `error` event that reported each."""
        return self._parts.inbox.dropped

    async def start(self, *, timeout: float | None = None) -> None:
        """Connects; returns once the agent is registered.

        timeout: seconds, in place of `start_timeout`; without either it takes as long as it takes.

        Raises the RelayError that ended the connector: `superseded_elsewhere`, `not_a_relay`, the refusal of the register,
        `unreachable` for what no further attempt can heal (its __cause__ and hint tell), `invalid_credential`,
        `timeout`, `closed`. Each attempt that fails is an `error` event before that. Cancelled, it closes the
        connector.
        """
        await self._life.start(timeout)

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
        return self._in_loop.inbox.read()

    async def send(
        self,
        to: str,
        payload: JsonObject,
        *,
        type: str = "message.send",
        task_id: str | None = None,
        seal: bool = False,
        timeout: float = SEND_TIMEOUT_S,
        wait_online: float = 0,
    ) -> Accepted:
        """Sends a message. Returns when the relay has accepted it; `delivery` says whether the target got it.

        While there is no connection it waits. Sends to one target arrive in the order of the calls, except one that the
        relay refused for the moment while later ones were in flight: where that matters, await each.

        payload: a JSON object, at most 32 levels deep; with the envelope around it at most 32768 bytes, sealed at most
        23000 bytes of JSON. type: `message.send`, or a kind of your own (`message.` and 1–32 of a–z 0–9 _, a letter
        first). task_id: 1–128 characters. seal: let nobody but the recipient read it; needs a pinned issuer of the
        recipient. wait_online: seconds to wait for the target to come online; when it does not come, nothing is sent,
        and `target_not_online` is raised. timeout: seconds from the call, or from when the target was online.

        Raises RelayError: `queue_full`, `timeout`, `outcome_unknown`, `frame_too_large`, `invalid_envelope`,
        `recipient_unknown`, `recipient_unverified` or `recipient_unsealable` of what is sealed, a refusal of the relay, or what ended the connector.
        `unavailable` and `rate_limited` come at once where the wait that the relay asks for is longer than the call has
        time; `retry_after` says how long it still is.
        """
        options = MessageOptions(type, task_id, seal, timeout, wait_online)
        return await self._in_loop.conversations.send(to, payload, options)

    async def ask(
        self,
        to: str,
        payload: JsonObject,
        *,
        type: str = "message.send",
        seal: bool = False,
        timeout: float = SEND_TIMEOUT_S,
        wait_online: float = 0,
    ) -> Delivery:
        """Sends a question and returns the delivery of its reply, which is then in no iteration and in no event.

        Only a `message.reply` of the asked agent counts: of one whose keys or issuer `trust` names, only what they
        vouch for, and to a sealed question a sealed one. wait_online: as of `send`. timeout: seconds for both, from the
        call, or from when the target was online. Raises RelayError as `send` does; `target_not_online` when nobody
        received it; `timeout` with outcome `unknown` when somebody did, and no reply came.
        """
        options = MessageOptions(type, None, seal, timeout, wait_online)
        return await self._in_loop.conversations.ask(to, payload, options)

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
        return _accepted_session(await self._in_loop.envelopes.session(content, timeout))

    async def approve(self, session_id: str, to: str, *, timeout: float = SEND_TIMEOUT_S) -> AcceptedSession:
        """Approves a session. to: who requested it. Raises RelayError as `send` does."""
        return _accepted_session(await self._in_loop.envelopes.decision("approve", session_id, to, None, timeout))

    async def reject(
        self, session_id: str, to: str, reason: str | None = None, *, timeout: float = SEND_TIMEOUT_S
    ) -> AcceptedSession:
        """Rejects a session. to: who requested it. reason: at most 500 characters. Raises RelayError as `send` does."""
        return _accepted_session(await self._in_loop.envelopes.decision("reject", session_id, to, reason, timeout))

    def receipt(self, session_id: str) -> Receipt:
        """What shows anybody that a session was requested and decided: `verify_receipt` checks it without a relay.

        Of the newest 1000 sessions, whose two envelopes this connector signed or verified. Raises
        `receipt_incomplete`, with what is missing.
        """
        return self._parts.sessions.receipt(session_id)

    async def check_online(self, agent: str, *, timeout: float = PRESENCE_TIMEOUT_S) -> Presence:
        """Whether an agent can be reached now.

        Raises RelayError: `unreachable`, also when no answer came within so many seconds; `rate_limited`, a refusal of
        the relay.
        """
        return await self._in_loop.check_online.presence_of(agent, timeout)

    async def wait_online(self, agent: str, *, timeout: float = SEND_TIMEOUT_S) -> Presence:
        """Returns when an agent can be reached.

        Raises RelayError: `target_not_online` after so many seconds, `timeout` when the relay did not answer in them,
        at once a refusal that lasts.
        """
        return await self._in_loop.presence_watch.until_online(agent, timeout)

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
        return self._parts.emitter.on(event, listener)

    @property
    def _in_loop(self) -> Parts:
        """Raises RuntimeError in another event loop."""
        self._life.check_loop()
        return self._parts


def _accepted_session(ack: AckFrame) -> AcceptedSession:
    return AcceptedSession(ack.envelope_id, ack.delivery, ack.duplicate, ack.session_id, ack.session_status)
