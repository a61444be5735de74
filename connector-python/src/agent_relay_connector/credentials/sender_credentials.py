"""Credentials of other agents, looked up at the relay when they are needed. What is found is checked by nobody yet."""

import asyncio
import time
from urllib.parse import quote

from ..agent_id import AGENT_SCHEME
from ..background import Background
from ..http import HttpClient
from ..limits import (
    LOOK_UP_TIMEOUT_S,
    LOOK_UP_WAIT_S,
    MAX_CREDENTIALS_KEPT,
    MAX_STRANGERS_KEPT,
    RECIPIENT_AGAIN_AFTER_S,
    STRANGERS_AT_ONCE,
    STRANGERS_PER_MINUTE,
)
from ..within import within
from .allowance import Allowance
from .credential_cache import CredentialCache, Entry, Query
from .read_credential import Credential, read_credential


class SenderCredentials:
    """A stranger is an agent whom no pinned issuer names or vouched for before: it may be one of very many."""

    def __init__(self, base: str, http: HttpClient, background: Background) -> None:
        """base: address of the relay, without a slash at its end."""
        self._base = base
        self._http = http
        self._background = background
        self._known = CredentialCache(MAX_CREDENTIALS_KEPT)
        self._strangers = CredentialCache(MAX_STRANGERS_KEPT)
        self._strangers_at_once = asyncio.Semaphore(STRANGERS_AT_ONCE)
        self._strangers_allowance = Allowance(STRANGERS_PER_MINUTE)

    async def find(
        self, agent: str, key_id: str | None, time_ms: float, is_stranger: bool = False
    ) -> Credential | None:
        """The credential of a key of an agent, or without `key_id` the newest of any.

        None when the relay has none, or does not say it within a second. Never raises.
        time_ms: at which it is to hold: one that had ended by then is looked up again. is_stranger: it is looked up as
        far as the share of strangers goes; for others nothing is taken from them.
        """
        query = (agent, key_id)
        counts = is_stranger and query not in self._known
        entry = self._strangers.entry_of(query) if counts else self._known_entry_of(query)
        if entry.asking is None and entry.is_due(query, time_ms) and (not counts or self._strangers_allowance.take()):
            entry.asked_at = time.monotonic()
            entry.asking = self._background.spawn(self._ask(entry, query, counts))
        if entry.asking is not None:
            # From when the look-up began: however many deliveries need it, none of them waits longer than a second.
            left_s = LOOK_UP_WAIT_S - (time.monotonic() - entry.asked_at)
            await asyncio.wait([entry.asking], timeout=max(0.0, left_s))
        return entry.credential

    async def find_recipient(self, agent: str, time_ms: float, needed_at: float) -> Credential | None:
        """The newest credential of an agent to seal to.

        That there is none is taken from no look-up that began before it was needed, and asked at most once a second: who
        waits for that has company, since all that needed it meanwhile take the same answer.
        time_ms: see `find`. needed_at: by time.monotonic().
        """
        # A timer may be early by less than what it counts in: then once more.
        while True:
            credential = await self.find(agent, None, time_ms)
            entry = self._known_entry_of((agent, None))
            if entry.holds_at(time_ms) or entry.asked_at >= needed_at:
                return credential
            if entry.asking is not None:
                await asyncio.wait([entry.asking])
            await asyncio.sleep(max(0.0, entry.asked_at + RECIPIENT_AGAIN_AFTER_S - time.monotonic()))

    def is_known(self, agent: str, key_id: str | None) -> None:
        """A pinned issuer vouched for it: no stranger takes its place."""
        query = (agent, key_id)
        entry = self._strangers.pop(query)
        if entry is not None:
            self._known.put(query, entry)

    def _known_entry_of(self, query: Query) -> Entry:
        self.is_known(*query)
        return self._known.entry_of(query)

    async def _ask(self, entry: Entry, query: Query, is_stranger: bool) -> None:
        """The wait for its turn counts, too."""
        look_up = self._look_up_of_stranger(*query) if is_stranger else self._look_up(*query)
        try:
            entry.credential = await within(look_up, LOOK_UP_TIMEOUT_S)
            entry.has_failed = False
        except (OSError, ValueError, asyncio.TimeoutError):
            entry.has_failed = True
        finally:
            entry.asking = None

    async def _look_up_of_stranger(self, agent: str, key_id: str | None) -> Credential | None:
        async with self._strangers_at_once:
            return await self._look_up(agent, key_id)

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
