"""Credentials of other agents, looked up at the relay when they are needed. What is found is checked by nobody yet."""

import asyncio
import time
from dataclasses import dataclass
from urllib.parse import quote

from ..agent_id import AGENT_SCHEME
from ..background import Background
from ..http import HttpClient
from ..limits import (
    CREDENTIAL_AGAIN_AFTER_S,
    CREDENTIAL_SOON_AGAIN_AFTER_S,
    LOOK_UP_TIMEOUT_S,
    LOOK_UP_WAIT_S,
    MAX_CREDENTIALS_KEPT,
)
from .read_credential import Credential, read_credential


@dataclass
class _Entry:
    """What is known of one key of an agent, as it was found last; a look-up that fails changes nothing."""

    credential: Credential | None = None
    has_failed: bool = False
    # By time.monotonic().
    asked_at: float = float("-inf")
    asking: "asyncio.Task[None] | None" = None

    def is_due(self, time_ms: float) -> bool:
        has_ended = self.credential is not None and self.credential.expires_at <= time_ms
        soon = self.has_failed or has_ended
        again_after_s = CREDENTIAL_SOON_AGAIN_AFTER_S if soon else CREDENTIAL_AGAIN_AFTER_S
        return time.monotonic() - self.asked_at >= again_after_s


class SenderCredentials:
    def __init__(self, base: str, http: HttpClient, background: Background) -> None:
        """base: address of the relay, without a slash at its end."""
        self._base = base
        self._http = http
        self._background = background
        # The one that was needed longest ago comes first.
        self._entries: dict[tuple[str, str | None], _Entry] = {}

    async def find(self, agent: str, key_id: str | None, time_ms: float) -> Credential | None:
        """The credential of a key of an agent, or without `key_id` the newest of any.

        None when the relay has none, or does not say it within a second. Never raises.
        time_ms: at which it is to hold: one that had ended by then is looked up again.
        """
        entry = self._entry_of(agent, key_id)
        if entry.asking is None and entry.is_due(time_ms):
            entry.asked_at = time.monotonic()
            entry.asking = self._background.spawn(self._ask(entry, agent, key_id))
        if entry.asking is not None:
            # From when the look-up began: however many deliveries need it, none of them waits longer than a second.
            left_s = LOOK_UP_WAIT_S - (time.monotonic() - entry.asked_at)
            await asyncio.wait([entry.asking], timeout=max(0.0, left_s))
        return entry.credential

    def _entry_of(self, agent: str, key_id: str | None) -> _Entry:
        entry = self._entries.pop((agent, key_id), None) or _Entry()
        self._entries[(agent, key_id)] = entry
        if len(self._entries) > MAX_CREDENTIALS_KEPT:
            del self._entries[next(iter(self._entries))]
        return entry

    async def _ask(self, entry: _Entry, agent: str, key_id: str | None) -> None:
        try:
            entry.credential = await self._look_up(agent, key_id)
            entry.has_failed = False
        except (OSError, ValueError, asyncio.TimeoutError):
            entry.has_failed = True
        finally:
            entry.asking = None

    async def _look_up(self, agent: str, key_id: str | None) -> Credential | None:
        """Raises where there is no answer, or none to this question. Source: docs/protocol.md#credentials."""
        query = "" if key_id is None else f"?key_id={quote(key_id, safe='')}"
        name = quote(agent[len(AGENT_SCHEME) :], safe="")
        answer = await self._http.get(f"{self._base}/v1/agents/{name}/credential{query}", LOOK_UP_TIMEOUT_S)
        if answer.status == 404:
            return None
        credential = read_credential(answer.members.get("credential")) if answer.status == 200 else None
        if credential is None or credential.agent != agent or key_id not in (None, credential.key_id):
            raise ValueError("not an answer to the question")
        return credential
