"""Who vouches for a credential."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from ..types import Verified
from .contract import CredentialReason
from .issuers import Issuers
from .read_credential import Credential


@dataclass(frozen=True)
class CredentialTrust:
    """Whom a recipient believes."""

    # The issuers that this agent pinned.
    pinned: Issuers
    # The issuers of the relay's manifest, which may be read again when it does not know the credential's.
    of_relay: Callable[[Credential], Awaitable[Issuers]]
    # True for an agent with pinned keys: it is believed under those alone.
    has_pinned_keys: Callable[[str], bool]
    # The host, with a port that is not the default, that this agent dialled.
    relay: str


@dataclass(frozen=True)
class Verdict:
    """What is known of who signed an envelope: by which issuer's credential, or why one counts for nothing."""

    verified: Verified
    issuer: str | None = None
    credential: Credential | None = None
    reason: CredentialReason | None = None


UNVERIFIED = Verdict("unverified")


async def vouching_for(credential: Credential, time_ms: float, trust: CredentialTrust) -> Verdict:
    """Judges a credential as it stood at a time, epoch milliseconds.

    What was pinned decides alone wherever it says something: no relay adds a key to a pinned issuer, or another issuer
    for an agent that a pinned one names.
    """
    is_pinned = trust.pinned.has(credential.issuer)
    if trust.has_pinned_keys(credential.agent) or (not is_pinned and trust.pinned.names(credential.agent)):
        return Verdict("unverified", reason="agent_not_allowed")
    issuers = trust.pinned if is_pinned else await trust.of_relay(credential)
    problem = issuers.problem_at(credential, time_ms)
    if problem is not None:
        return Verdict("unverified", reason=problem)
    if issuers.is_revoked(credential):
        return Verdict("unverified", reason="revoked")
    if credential.audience is not None and trust.relay not in credential.audience:
        return Verdict("unverified", reason="wrong_relay")
    return Verdict("agent" if is_pinned else "relay_issuer", credential.issuer, credential)
