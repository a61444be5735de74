"""Issuers that somebody named, and what they say of credentials."""

from collections.abc import Sequence
from weakref import WeakSet

from ..errors import RelayError
from ..keys import VerifyKey, ed25519_verify_key
from ..limits import MAX_CREDENTIAL_AHEAD_MS
from .agent_holders import AgentHolders
from .contract import ANY_AGENT, CredentialReason
from .issuer_record import IssuerKey, read_issuer_record
from .jws import is_token_signed_by
from .public_jwk import thumbprint_of
from .read_credential import Credential


class Issuers:
    """Immutable. Source: docs/protocol.md#credentials."""

    def __init__(self, records: Sequence[object]) -> None:
        """Raises `invalid_issuer` when a record cannot be used, or when a name, a key or a pattern stands under two."""
        issuers = [read_issuer_record(record) for record in records]
        self._names = {issuer.issuer for issuer in issuers}
        self._holders = AgentHolders((issuer.issuer, pattern) for issuer in issuers for pattern in issuer.agents)
        # By issuer, and by the key's thumbprint.
        self._keys: dict[tuple[str, str], tuple[IssuerKey, VerifyKey]] = {}
        # By issuer, and by agent or ANY_AGENT: before that time nothing that was issued holds.
        self._revoked_before: dict[tuple[str, str], float] = {}
        # Credentials whose signature held.
        self._signed: WeakSet[Credential] = WeakSet()
        listed = [key.public_key for issuer in issuers for key in issuer.keys]
        is_single = len(self._names) == len(issuers) and len(set(listed)) == len(listed)
        if not is_single or not self._holders.is_unambiguous:
            raise RelayError("invalid_issuer")
        for issuer in issuers:
            for key in issuer.keys:
                name = (issuer.issuer, thumbprint_of(key.public_key, "Ed25519"))
                self._keys[name] = (key, ed25519_verify_key(key.public_key))
            for agent, before in issuer.revoked:
                former = self._revoked_before.get((issuer.issuer, agent), 0)
                self._revoked_before[(issuer.issuer, agent)] = max(before, former)

    def has(self, issuer: str) -> bool:
        """True for the name of one of them."""
        return issuer in self._names

    def may_hold(self, agent: str) -> bool:
        """True when one of them has the agent, be it as one of all others."""
        return self._holders.holder_of(agent) is not None

    def names(self, agent: str) -> bool:
        """True when one of them has the agent by its id or its name space, not only as one of all others."""
        return self._holders.named_holder_of(agent) is not None

    def knows_key_of(self, credential: Credential) -> bool:
        """True when one of them has the key that the credential says it is signed with."""
        return (credential.issuer, credential.issuer_key) in self._keys

    def problem_at(self, credential: Credential, time_ms: float) -> CredentialReason | None:
        """Why the credential did not hold at that time, whatever was revoked since; None when it did. Never raises."""
        found = self._keys.get((credential.issuer, credential.issuer_key))
        if found is None:
            return "unknown_issuer"
        term, key = found
        begin = max(credential.issued_at, credential.not_before)
        if begin > time_ms + MAX_CREDENTIAL_AHEAD_MS or time_ms < term.begin:
            return "not_yet_valid"
        if credential.expires_at <= time_ms or term.end <= time_ms:
            return "expired"
        if self._holders.holder_of(credential.agent) != credential.issuer:
            return "agent_not_allowed"
        return None if self._is_signed(credential, key) else "signature"

    def is_revoked(self, credential: Credential) -> bool:
        """True when its issuer revoked what it had issued by then."""
        return any(
            credential.issued_at < self._revoked_before.get((credential.issuer, agent), float("-inf"))
            for agent in (credential.agent, ANY_AGENT)
        )

    def _is_signed(self, credential: Credential, key: VerifyKey) -> bool:
        if credential in self._signed:
            return True
        is_signed = is_token_signed_by(key, credential.token)
        if is_signed:
            self._signed.add(credential)
        return is_signed
