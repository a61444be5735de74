"""What a caller gives: keys, credentials, and whom to believe."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict, Union


class AgentKey(TypedDict, total=False):
    """What this agent signs with. The algorithm is the key's, never the envelope's."""

    key_id: str  # may be left out where there is a credential, which then says it
    alg: Literal["ed25519", "hmac-sha256"]
    private_key: str  # of ed25519: base64url, the 32-byte seed
    secret: str  # of hmac-sha256: base64url, at least 32 bytes


@dataclass(frozen=True)
class SealingKey:
    """An X25519 key that payloads are sealed to."""

    # base64url, 32 bytes.
    private_key: str = field(repr=False)
    # Epoch milliseconds from which on it opens nothing any more; of a former key.
    until: float | None = None


@dataclass(frozen=True)
class CredentialWithKeys:
    """A credential, and what it is for where that is something new."""

    # The token.
    credential: str = field(repr=False)
    # The key that it is for, from now on the agent's. None: the present one.
    key: AgentKey | None = field(default=None, repr=False)
    # In place of those before; those of earlier credentials go on to open what was sealed to them. None: as before.
    sealing_keys: "Sequence[str | SealingKey] | None" = None


# A token, or what gives the present one: it is called at the start, and again long before the token ends.
CredentialSource = Union[str, Callable[[], Awaitable[Union[str, CredentialWithKeys]]]]


class TrustedKey(TypedDict, total=False):
    """What another agent's signatures are checked with. Whoever holds an HMAC secret can also sign with it."""

    key_id: str
    alg: Literal["ed25519", "hmac-sha256"]
    public_key: str  # of ed25519: base64url, 32 bytes
    secret: str  # of hmac-sha256: base64url


@dataclass(frozen=True)
class Trust:
    """Whom this agent believes. The relay checks signatures too; with these it need not be trusted."""

    # Keys of other agents, by agent id. Such an agent is believed under them alone.
    keys: Mapping[str, Sequence[TrustedKey]] = field(default_factory=dict)
    # Issuers of credentials, each believed for its `agents` only: records as in the relay's keys file.
    issuers: Sequence[Mapping[str, Any]] = ()
    # Ids of gateway keys: what they sign passes `require_verified`.
    gateways: Sequence[str] = ()
