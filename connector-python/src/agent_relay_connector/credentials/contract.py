"""Names and forms of credentials. Source: docs/protocol.md#credentials."""

import re
from dataclasses import dataclass
from typing import Literal

_ISSUER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_CREDENTIAL_KEY = re.compile(r"jkt-[A-Za-z0-9_-]{43}")

# Among the agents of an issuer: whoever no other pattern names.
ANY_AGENT = "*"
# Of a token's header: the type, and Ed25519 by RFC 9864 or by its older name of RFC 8037.
TOKEN_TYPE = "relay-credential+jwt"
TOKEN_ALGORITHMS = ("Ed25519", "EdDSA")

# Why a credential vouches for nothing.
CredentialReason = Literal[
    "unknown_issuer",
    "signature",
    "expired",
    "not_yet_valid",
    "revoked",
    "agent_not_allowed",
    "key_mismatch",
    "wrong_relay",
]


@dataclass(frozen=True)
class CredentialFacts:
    """What a credential says. Times are epoch milliseconds."""

    issuer: str
    agent: str
    # The agent's Ed25519 key, in base64url.
    public_key: str
    # The agent's X25519 key, in base64url.
    sealing_key: str | None
    issued_at: int
    expires_at: int
    not_before: int
    # The relays that it is for; None = any.
    audience: tuple[str, ...] | None


def is_issuer_name(value: object) -> bool:
    return isinstance(value, str) and _ISSUER.fullmatch(value) is not None


def is_credential_key(key_id: str) -> bool:
    """True for the `key_id` of a key that a credential makes known: `jkt-` and the key's thumbprint."""
    return _CREDENTIAL_KEY.fullmatch(key_id) is not None


def credential_key_id(thumbprint: str) -> str:
    return f"jkt-{thumbprint}"
