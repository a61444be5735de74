"""What this agent knows of others: whom it trusts, and what it looks up at the relay."""

import asyncio
import time
from urllib.parse import quote

from .address import RelayAddress
from .backoff import backoff_s
from .background import Background
from .clock import Clock
from .credentials.sender_credentials import SenderCredentials
from .error_catalogue import known_code, known_retry
from .errors import RelayError
from .frames import positive
from .http import Answer, HttpClient
from .limits import PRESENCE_CAP_S, PRESENCE_TIMEOUT_S, RETRY_AFTER_S
from .options import ConnectorOptions
from .relay_manifest import RelayManifest
from .sender_verifier import SenderVerifier
from .strict_json import text_of
from .types import Presence

_STATUSES = ("online", "stale", "offline", "not_seen")


class Peers:
    def __init__(
        self, options: ConnectorOptions, address: RelayAddress, clock: Clock, background: Background
    ) -> None:
        """Raises `invalid_key` or `invalid_issuer`."""
        self._base = address.base
        self._clock = clock
        self._http = HttpClient()
        manifest = RelayManifest(address.base, self._http, background)
        credentials = SenderCredentials(address.base, self._http, background)
        self.verifier = SenderVerifier(
            options.trust, manifest, credentials, address.host, is_pinned_only=options.require_verified
        )

    def stop(self) -> None:
        self._http.stop()

    async def sealing_key_of(self, agent: str) -> str:
        """The X25519 key of an agent.

        Raises `recipient_unverified` unless a pinned issuer vouches for it, and `clock_untrusted` when nobody can tell
        here what has ended.
        """
        if not self._clock.is_trusted:
            raise RelayError("clock_untrusted")
        return await self.verifier.sealing_key_of(agent, self._clock.bounded_now())

    async def presence_of(self, agent: str) -> Presence:
        """Raises RelayError: `unreachable`, or the relay's refusal. Source: docs/protocol.md#presence."""
        url = f"{self._base}/api/onboarding/check-online?agent_id={quote(agent, safe='')}"
        try:
            answer = await self._http.get(url, PRESENCE_TIMEOUT_S)
        except (OSError, asyncio.TimeoutError) as cause:
            raise RelayError("unreachable", f"The relay at {self._base} does not answer.") from cause
        status = answer.members.get("status")
        if answer.status != 200 or status not in _STATUSES:
            raise _refusal(answer)
        return Presence(
            agent=agent,
            status=status,
            can_deliver_realtime=answer.members.get("can_deliver_realtime") is True,
            details=answer.members,
        )

    async def wait_online(self, agent: str, timeout_s: float) -> Presence:
        """Asks until the agent can be delivered to, at growing intervals. Raises `timeout`, or a refusal that lasts."""
        deadline = time.monotonic() + timeout_s
        attempt = 0
        while True:
            wait_s = backoff_s(attempt, PRESENCE_CAP_S)
            try:
                presence = await self.presence_of(agent)
                if presence.can_deliver_realtime:
                    return presence
            except RelayError as error:
                if error.retry != "later":
                    raise
                wait_s = max(wait_s, error.retry_after or 0)
            attempt += 1
            if time.monotonic() + wait_s >= deadline:
                raise RelayError("timeout", f"{agent} did not come online in time.")
            await asyncio.sleep(wait_s)


def _refusal(answer: Answer) -> RelayError:
    members = answer.members
    code = text_of(members.get("code"))
    if code is None:
        return RelayError("unreachable", "The server at this address is not an Agent Relay.")
    after_ms = positive(members.get("retry_after_ms"))
    return RelayError(
        known_code(code),
        text_of(members.get("detail")) or text_of(members.get("title")),
        text_of(members.get("hint")),
        retry=known_retry(members.get("retry")),
        retry_after=RETRY_AFTER_S if after_ms is None else after_ms / 1000,
    )
