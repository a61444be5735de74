"""What a connector gives. Durations are seconds; times of envelopes are epoch milliseconds.

Source: docs/protocol.md#envelopes.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from .limits import SEND_TIMEOUT_S
from .message_options import MessageOptions

# A JSON object as it was parsed.
JsonObject = Mapping[str, Any]

_Signed = TypedDict(
    "_Signed",
    {"id": str, "type": str, "from": str, "payload": JsonObject, "ts": int, "key_id": str, "sig": str},
)


class Envelope(_Signed, total=False):
    """A signed envelope as it was delivered. Source: docs/protocol.md#envelopes."""

    to: str
    task_id: str


Verified = Literal["agent", "relay_issuer", "gateway", "unverified"]
SessionStatus = Literal["pending_until_session.approve_or_session.reject", "approved", "rejected", "expired"]


@dataclass(frozen=True)
class TargetDelivery:
    """The target's presence at the moment of acceptance."""

    status: Literal["online", "stale", "not_seen"]
    # True: handed to the target's connection. False: nobody received it; send it again once the target is online.
    can_deliver_realtime: bool


@dataclass(frozen=True)
class Accepted:
    """An accepted message. Accepted is not delivered: see `delivery`."""

    envelope_id: str
    delivery: TargetDelivery
    # The relay had accepted this envelope before: it was sent again because the first answer was lost.
    duplicate: bool


@dataclass(frozen=True)
class AcceptedSession(Accepted):
    """An accepted session request or decision."""

    session_id: str
    status: SessionStatus


@dataclass(frozen=True)
class Delivery:
    """An envelope that came in for this agent."""

    envelope: Envelope
    sender: str
    type: str
    # Of a sealed one: what was sealed.
    payload: JsonObject
    # Of `session.*`.
    session_id: str | None
    task_id: str | None
    # Who vouches for the sender. `agent`: a key, or an issuer, that `trust` names. `relay_issuer`: an issuer that only
    # the relay names. `gateway`: one of the relay's gateways, on behalf of a sender that it authenticated.
    # `unverified`: the relay, nobody else.
    verified: Verified
    # Of the credential by which it is verified.
    issuer: str | None
    # Only this agent could read it on its way.
    sealed: bool
    # Epoch milliseconds, by this machine's clock.
    received_at_ms: int
    _replier: Callable[["Delivery", JsonObject, MessageOptions], Awaitable[Accepted]] = field(repr=False, compare=False)

    async def reply(
        self,
        payload: JsonObject,
        *,
        seal: bool = False,
        timeout: float = SEND_TIMEOUT_S,
        wait_online: float = 0,
    ) -> Accepted:
        """Answers the sender with a `message.reply` that `ask` recognises; what was sealed is always replied to sealed.

        Raises RelayError as `send` does, and `not_answerable` where nothing is to be answered.
        """
        options = MessageOptions(seal=seal, timeout_s=timeout, wait_online_s=wait_online)
        return await self._replier(self, payload, options)


@dataclass(frozen=True)
class Presence:
    """Whether an agent can be reached now. Source: docs/protocol.md#presence."""

    agent: str
    status: Literal["online", "stale", "offline", "not_seen"]
    can_deliver_realtime: bool
    # All members of the relay's answer.
    details: JsonObject


@dataclass(frozen=True)
class ConnectorState:
    """`status`; of `reconnecting` why and in how many seconds; of `closed` the error that ended it for good."""

    status: Literal["idle", "connecting", "online", "reconnecting", "closed"]
    # `unreachable`: no relay answered. `lost`: there was a connection.
    reason: Literal["unreachable", "lost"] | None = None
    retry_in: float | None = None
    # 1006 when the websocket had none.
    close_code: int | None = None
    cause: Exception | None = None


@dataclass(frozen=True)
class Notice:
    """What the relay says without being asked: `kind`, and its members as docs/protocol.md#frames lists them."""

    kind: Literal["pending_sessions", "decided_sessions", "superseded", "released", "draining", "slow_down"]
    members: JsonObject


@dataclass(frozen=True)
class Warning:
    """What works, and should be changed nevertheless.

    `outdated_connector`: the relay hands out a newer version than this one. `clock_untrusted`: this machine's clock is
    too far off to tell what is old.
    """

    code: Literal["outdated_connector", "clock_untrusted"]
    message: str
    hint: str
