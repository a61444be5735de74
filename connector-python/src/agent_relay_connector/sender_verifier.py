"""Tells who signed an envelope: a trusted key of its sender, a gateway of the relay, or a key with a credential."""

from .canonical import is_signed_by
from .credentials.contract import is_credential_key
from .credentials.issuers import Issuers
from .credentials.sender_credentials import SenderCredentials
from .credentials.vouching import UNVERIFIED, CredentialTrust, Verdict, vouching_for
from .errors import RelayError
from .gateway_keys import GATEWAY_KEY_PREFIX
from .given import Trust
from .keys import VerifyKey, verify_key
from .relay_manifest import RelayManifest
from .types import Envelope, Verified

# What another pin may mend.
_NOT_PINNED = ("unknown_issuer", "agent_not_allowed", "signature")


class SenderVerifier:
    def __init__(
        self,
        trust: Trust,
        manifest: RelayManifest,
        credentials: SenderCredentials,
        relay: str,
        is_pinned_only: bool,
    ) -> None:
        """relay: the host that this agent dialled. is_pinned_only: nobody else counts, so nobody else is looked up.

        Raises `invalid_key` or `invalid_issuer`.
        """
        self._is_pinned_only = is_pinned_only
        self._gateways = trust.gateways
        self._manifest = manifest
        self._credentials = credentials
        # A key is trusted for one agent only.
        self._keys = {
            (agent, key.get("key_id", "")): verify_key(key) for agent, keys in trust.keys.items() for key in keys
        }
        pinned_agents = {agent for agent, _ in self._keys}
        self._trust = CredentialTrust(
            pinned=Issuers(trust.issuers),
            of_relay=manifest.issuers_for,
            has_pinned_keys=lambda agent: agent in pinned_agents,
            relay=relay,
        )

    async def check(self, envelope: Envelope) -> Verdict | None:
        """None for a forged one: its key is known, and did not sign it. Never raises."""
        key_id = envelope["key_id"]
        if key_id.startswith(GATEWAY_KEY_PREFIX):
            key = await self._manifest.gateway_key(key_id)
            return UNVERIFIED if key is None else _signed(envelope, key, Verdict("gateway"))
        pinned = self._keys.get((envelope["from"], key_id))
        if pinned is not None:
            return _signed(envelope, pinned, Verdict("agent"))
        return await self._check_credential(envelope)

    def is_verified(self, verified: Verified, key_id: str) -> bool:
        """True for what passes where only what is verified is wanted."""
        return verified == "agent" or (verified == "gateway" and key_id in self._gateways)

    def is_pinned(self, agent: str) -> bool:
        """True for one of which this agent pinned keys, or an issuer that may have it: what is its can be verified."""
        return self._trust.has_pinned_keys(agent) or self._trust.pinned.may_hold(agent)

    async def sealing_key_of(self, agent: str, now_ms: float, needed_at: float) -> str:
        """The X25519 key of an agent, in base64url, for payloads that only it is to read.

        Raises `recipient_unknown` without a credential of it, `recipient_unverified` unless a pinned issuer vouches for it
        now, and `recipient_unsealable` where it names no such key. needed_at: by time.monotonic().
        """
        credential = await self._credentials.find_recipient(agent, now_ms, needed_at)
        if credential is None:
            raise RelayError("recipient_unknown")
        verdict = await vouching_for(credential, now_ms, self._trust)
        if verdict.verified != "agent":
            raise _unverified(verdict, credential.issuer)
        if credential.sealing_key is None:
            raise RelayError("recipient_unsealable")
        return credential.sealing_key

    async def _check_credential(self, envelope: Envelope) -> Verdict | None:
        agent, key_id, ts = envelope["from"], envelope["key_id"], envelope["ts"]
        is_of_use = is_credential_key(key_id) and (not self._is_pinned_only or self._trust.pinned.may_hold(agent))
        is_stranger = not self._trust.pinned.names(agent)
        credential = await self._credentials.find(agent, key_id, ts, is_stranger) if is_of_use else None
        if credential is None:
            return UNVERIFIED
        # Whoever issued it: `key_id` is the digest of the key, so no other could have signed.
        if not is_signed_by(credential.key, envelope):
            return None
        verdict = await vouching_for(credential, ts, self._trust)
        if verdict.verified == "agent":
            self._credentials.is_known(agent, key_id)
        return verdict


def _signed(envelope: Envelope, key: VerifyKey, verdict: Verdict) -> Verdict | None:
    return verdict if is_signed_by(key, envelope) else None


def _unverified(verdict: Verdict, issuer: str) -> RelayError:
    """Says what is wrong with the credential of a pinned issuer. Who is not pinned is told as the catalogue has it."""
    if verdict.reason is None or verdict.reason in _NOT_PINNED:
        return RelayError("recipient_unverified")
    return RelayError(
        "recipient_unverified",
        f"The recipient's credential of {issuer} counts for nothing: {verdict.reason}.",
        "The recipient has to register with another credential.",
    )
