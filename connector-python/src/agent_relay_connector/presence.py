"""One connection's registers and heartbeats."""

import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakSet

from .clock import Clock
from .credentials.read_credential import Credential
from .signer import Signer

PresenceType = Literal["agent.register", "agent.heartbeat"]

# So many keys of an agent hold on a connection, those of its last registers. Source: docs/protocol.md#credentials.
_KEYS_HELD = 2


@dataclass(frozen=True, eq=False)
class Registration:
    """What an agent registers with."""

    signer: Signer
    # What makes its key known; None where the relay lists the key.
    credential: Credential | None


@dataclass(frozen=True)
class PresenceOptions:
    agent: str
    # The host, with a port that is not the default, that this agent dialled.
    relay: str
    # None for everyone.
    accept_from: Sequence[str] | None
    clock: Clock
    # Raises where no register may go out. Its argument makes the text of the one that is to.
    before_register: Callable[[Callable[[], str]], Awaitable[None]]
    # What a connection is to be registered with, in this order: what comes last signs from then on.
    registrations: Callable[[], Sequence[Registration]]
    # A register with it goes out.
    presented: Callable[[Registration], None]


@dataclass(frozen=True)
class SignedPresence:
    """A register or heartbeat, signed."""

    id: str
    text: str
    # Of a register.
    registration: Registration | None


class Presence:
    """Knows which keys the relay accepted on the connection."""

    def __init__(self, options: PresenceOptions) -> None:
        self._options = options
        # Of each key the last that was accepted, the newest at the end.
        self._accepted: list[Registration] = []
        self._answered: WeakSet[Registration] = WeakSet()

    @property
    def signer(self) -> Signer:
        """What signs on this connection: the key of the last accepted register. There is one after that."""
        return self._accepted[-1].signer

    @property
    def is_complete(self) -> bool:
        """False while there is something to register with that has no answer yet."""
        return self._last in self._answered

    def accepts(self, key_id: str) -> bool:
        """True for a key whose envelopes the relay takes on this connection now."""
        now = self._options.clock.now()
        return any(
            each.signer.key_id == key_id and (each.credential is None or each.credential.expires_at > now)
            for each in self._accepted
        )

    async def sign(self, kind: PresenceType, connection_id: str | None) -> SignedPresence:
        """connection_id: of the connection that it goes out on."""
        # Of no use to whoever sees it at another relay, or on another connection. Source: docs/protocol.md#destination.
        destination = {"relay": self._options.relay}
        if connection_id is not None:
            destination["connection_id"] = connection_id
        if kind == "agent.heartbeat":
            return self._signed(kind, self.signer, destination, None)
        await self._options.before_register(lambda: self._register(destination).text)
        return self._register(destination)

    def accepted(self, registration: Registration) -> None:
        self._answered.add(registration)
        key_id = registration.signer.key_id
        others = [each for each in self._accepted if each.signer.key_id != key_id]
        self._accepted = [*others, registration][-_KEYS_HELD:]

    def dispenses_with(self, registration: Registration | None) -> bool:
        """True for one that was refused and that another follows: the agent does without it."""
        if registration is None or registration is self._last:
            return False
        self._answered.add(registration)
        return True

    @property
    def _last(self) -> Registration:
        return self._options.registrations()[-1]

    def _register(self, destination: Mapping[str, str]) -> SignedPresence:
        registrations = self._options.registrations()
        registration = next((each for each in registrations if each not in self._answered), registrations[-1])
        self._options.presented(registration)
        credential = registration.credential
        payload: dict[str, Any] = {**destination}
        if credential is not None:
            payload["credential"] = credential.token
        if self._options.accept_from is not None:
            payload["accept_from"] = list(self._options.accept_from)
        return self._signed("agent.register", registration.signer, payload, registration)

    def _signed(
        self, kind: PresenceType, signer: Signer, payload: Mapping[str, Any], registration: Registration | None
    ) -> SignedPresence:
        envelope_id = str(uuid.uuid4())
        draft = signer.draft({"type": kind, "payload": payload, "id": envelope_id, "from": self._options.agent})
        return SignedPresence(envelope_id, signer.sign(draft).text, registration)
