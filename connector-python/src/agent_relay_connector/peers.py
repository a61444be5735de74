"""What this agent knows of others: whom it trusts, and what it looks up at the relay."""

from .address import RelayAddress
from .background import Background
from .clock import Clock
from .credentials.sender_credentials import SenderCredentials
from .errors import RelayError
from .given import Trust
from .http import HttpClient
from .relay_manifest import RelayManifest
from .sender_verifier import SenderVerifier


class Peers:
    def __init__(
        self,
        trust: Trust,
        require_verified: bool,
        address: RelayAddress,
        clock: Clock,
        http: HttpClient,
        background: Background,
    ) -> None:
        """Raises `invalid_key` or `invalid_issuer`."""
        self._clock = clock
        manifest = RelayManifest(address.base, http, background)
        credentials = SenderCredentials(address.base, http, background)
        self.verifier = SenderVerifier(trust, manifest, credentials, address.host, is_pinned_only=require_verified)

    async def sealing_key_of(self, agent: str, needed_at: float) -> str:
        """The X25519 key of an agent.

        Raises `recipient_unknown`, `recipient_unverified` or `recipient_unsealable`, and `clock_untrusted` when nobody can
        tell here what has ended.
        """
        if not self._clock.is_trusted:
            raise RelayError("clock_untrusted")
        return await self.verifier.sealing_key_of(agent, self._clock.bounded_now(), needed_at)
