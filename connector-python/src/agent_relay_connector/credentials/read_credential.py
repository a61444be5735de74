"""A credential as it was read: its form is valid, nothing else was checked."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..agent_id import is_agent_id
from ..base64url import decode_base64url
from ..keys import VerifyKey, ed25519_verify_key
from ..limits import MAX_CREDENTIAL_LIFE_MS, MAX_TOKEN_CHARACTERS
from ..strict_json import MAX_SAFE_INTEGER, integer_of, members_of, parse_unique_json, text_of
from .contract import (
    TOKEN_ALGORITHMS,
    TOKEN_TYPE,
    CredentialFacts,
    credential_key_id,
    is_issuer_name,
)
from .jws import parts_of
from .public_jwk import read_public_jwk, thumbprint_of


@dataclass(frozen=True, eq=False)
class Credential(CredentialFacts):
    token: str
    # Thumbprint of the issuer's key.
    issuer_key: str
    # `jkt-` and the thumbprint of the agent's key.
    key_id: str
    # The agent's key.
    key: VerifyKey


def read_credential(token: object) -> Credential | None:
    """The credential of a token; None when it is malformed. Its time is bounded by the size of a token."""
    if not isinstance(token, str) or len(token) > MAX_TOKEN_CHARACTERS:
        return None
    parts = parts_of(token)
    if parts is None:
        return None
    issuer_key = _issuer_key(_object_in(parts[0]))
    facts = _facts(_object_in(parts[1]))
    if issuer_key is None or facts is None:
        return None
    public_key = facts["public_key"]
    key_id = credential_key_id(thumbprint_of(public_key, "Ed25519"))
    return Credential(**facts, token=token, issuer_key=issuer_key, key_id=key_id, key=ed25519_verify_key(public_key))


def _object_in(part: str) -> Mapping[str, Any]:
    """One spelling, UTF-8, one JSON object, no member twice: two readers of a token never see two different things."""
    data = decode_base64url(part)
    try:
        return {} if data is None else members_of(parse_unique_json(data.decode()))
    except ValueError:
        return {}


def _issuer_key(header: Mapping[str, Any]) -> str | None:
    """`kid` of a header that holds `alg`, `typ` and `kid`, and nothing else: no `jku`, `jwk`, `x5u`, `x5c`, `crit`."""
    is_known = header.get("alg") in TOKEN_ALGORITHMS and header.get("typ") == TOKEN_TYPE
    return text_of(header.get("kid")) if is_known and len(header) == 3 else None


def _facts(claims: Mapping[str, Any]) -> dict[str, Any] | None:
    """Members that are not named here do not count."""
    if not is_issuer_name(claims.get("iss")) or not is_agent_id(claims.get("sub")):
        return None
    public_key = read_public_jwk(members_of(claims.get("cnf")).get("jwk"), "Ed25519")
    sealing_key = read_public_jwk(members_of(claims.get("enc")).get("jwk"), "X25519")
    if public_key is None or (sealing_key is None and "enc" in claims):
        return None
    issued_at, expires_at = _time(claims.get("iat")), _time(claims.get("exp"))
    not_before = _time(claims["nbf"]) if "nbf" in claims else issued_at
    if issued_at is None or expires_at is None or not_before is None:
        return None
    if not 0 < expires_at - issued_at <= MAX_CREDENTIAL_LIFE_MS:
        return None
    audience = _audience(claims["aud"]) if "aud" in claims else None
    if audience is None and "aud" in claims:
        return None
    return {
        "issuer": claims["iss"],
        "agent": claims["sub"],
        "public_key": public_key,
        "sealing_key": sealing_key,
        "issued_at": issued_at,
        "expires_at": expires_at,
        "not_before": not_before,
        "audience": audience,
    }


def _time(value: object) -> int | None:
    """Epoch milliseconds of whole seconds."""
    seconds = integer_of(value)
    return seconds * 1000 if seconds is not None and 0 <= seconds * 1000 <= MAX_SAFE_INTEGER else None


def _audience(value: object) -> tuple[str, ...] | None:
    """One text, or several. Source: RFC 7519, section 4.1.3."""
    names = value if isinstance(value, list) else [value]
    return tuple(names) if all(isinstance(name, str) for name in names) else None
