"""Who may sign credentials, for which agents: the form of the relay's keys file.

Source: docs/protocol.md#credentials.
"""

from collections.abc import Callable
from dataclasses import dataclass

from ..agent_id import is_agent_id, is_agent_pattern
from ..errors import RelayError
from ..iso_time import epoch_ms_of
from ..strict_json import members_of
from .contract import ANY_AGENT, is_issuer_name
from .public_jwk import is_public_key


@dataclass(frozen=True)
class IssuerKey:
    """Valid from `begin` (inclusive) until `end` (exclusive), epoch milliseconds."""

    public_key: str
    begin: float
    end: float


@dataclass(frozen=True)
class IssuerRecord:
    issuer: str
    keys: tuple[IssuerKey, ...]
    # Ids, name spaces such as `agent://acme.*`, or `*`: whoever no other pattern names.
    agents: tuple[str, ...]
    # (agent or `*`, epoch milliseconds): what was issued for it before that time no longer holds.
    revoked: tuple[tuple[str, float], ...]


def read_issuer_record(value: object) -> IssuerRecord:
    """Raises `invalid_issuer`. A member that it does not know makes it invalid: it may be a misspelt `revoked`."""
    members = members_of(value)
    _require(bool(members) and members.keys() <= {"issuer", "keys", "agents", "revoked"})
    keys, agents, revoked = members.get("keys"), members.get("agents"), members.get("revoked", [])
    _require(is_issuer_name(members.get("issuer")) and isinstance(revoked, list))
    _require(_is_filled(keys, lambda _: True) and _is_filled(agents, _is_pattern))
    return IssuerRecord(
        issuer=members["issuer"],
        keys=tuple(map(_key, members["keys"])),
        agents=tuple(members["agents"]),
        revoked=tuple(map(_revocation, revoked)),
    )


def _key(value: object) -> IssuerKey:
    members = members_of(value)
    _require(members.keys() <= {"public_key", "not_before", "expires_at"})
    _require(is_public_key(members.get("public_key"), "Ed25519"))
    begin = _time(members["not_before"]) if "not_before" in members else float("-inf")
    end = _time(members["expires_at"]) if "expires_at" in members else float("inf")
    return IssuerKey(members["public_key"], begin, end)


def _revocation(value: object) -> tuple[str, float]:
    members = members_of(value)
    agent = members.get("agent")
    _require(members.keys() <= {"agent", "issued_before"} and (agent == ANY_AGENT or is_agent_id(agent)))
    return members["agent"], _time(members.get("issued_before"))


def _is_pattern(value: object) -> bool:
    return value == ANY_AGENT or is_agent_pattern(value)


def _time(value: object) -> float:
    """Epoch milliseconds of ISO 8601 with an offset."""
    time_ms = epoch_ms_of(value)
    if time_ms is None:
        raise RelayError("invalid_issuer")
    return time_ms


def _is_filled(value: object, is_item: Callable[[object], bool]) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(map(is_item, value))


def _require(condition: bool) -> None:
    if not condition:
        raise RelayError("invalid_issuer")
