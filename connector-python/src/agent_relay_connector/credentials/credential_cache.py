"""Credentials of other agents, as they were looked up last."""

import asyncio
import time
from dataclasses import dataclass

from ..limits import CREDENTIAL_AGAIN_AFTER_S, CREDENTIAL_SOON_AGAIN_AFTER_S, RECIPIENT_AGAIN_AFTER_S
from .read_credential import Credential

# An agent, and the id of its key, or None for the newest of any.
Query = tuple[str, str | None]


@dataclass
class Entry:
    """What is known of one key of an agent, as it was found last; a look-up that fails changes nothing."""

    # None too when the relay had none: that counts for seconds only, since the agent may come any moment.
    credential: Credential | None = None
    has_failed: bool = False
    # By time.monotonic().
    asked_at: float = float("-inf")
    asking: "asyncio.Task[None] | None" = None

    def is_due(self, query: Query, time_ms: float) -> bool:
        """time_ms: at which it is to hold."""
        soon_again_after_s = RECIPIENT_AGAIN_AFTER_S if query[1] is None else CREDENTIAL_SOON_AGAIN_AFTER_S
        is_known = self.holds_at(time_ms) and not self.has_failed
        return time.monotonic() - self.asked_at >= (CREDENTIAL_AGAIN_AFTER_S if is_known else soon_again_after_s)

    def holds_at(self, time_ms: float) -> bool:
        return self.credential is not None and self.credential.expires_at > time_ms


class CredentialCache:
    """One more than there may be takes the place of the one that was needed longest ago."""

    def __init__(self, max_kept: int) -> None:
        self._max_kept = max_kept
        self._entries: dict[Query, Entry] = {}

    def __contains__(self, query: Query) -> bool:
        return query in self._entries

    def entry_of(self, query: Query) -> Entry:
        """The one that there is, or a new one."""
        entry = self.pop(query) or Entry()
        self.put(query, entry)
        return entry

    def pop(self, query: Query) -> Entry | None:
        return self._entries.pop(query, None)

    def put(self, query: Query, entry: Entry) -> None:
        self._entries[query] = entry
        if len(self._entries) > self._max_kept:
            del self._entries[next(iter(self._entries))]
