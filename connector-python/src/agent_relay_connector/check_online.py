"""Asks the relay whether an agent can be reached now. Source: docs/protocol.md#presence."""

import asyncio
from urllib.parse import quote

from .error_catalogue import known_code, known_retry
from .errors import RelayError
from .frames import asked_wait_s
from .http import Answer, HttpClient
from .limits import PRESENCE_TIMEOUT_S, RETRY_AFTER_S
from .said_text import said_text
from .strict_json import text_of
from .types import Presence

_STATUSES = ("online", "stale", "offline", "not_seen")


class CheckOnline:
    def __init__(self, base: str, http: HttpClient) -> None:
        """base: address of the relay, without a slash at its end."""
        self._base = base
        self._http = http

    async def presence_of(self, agent: str, timeout_s: float = PRESENCE_TIMEOUT_S) -> Presence:
        """Raises RelayError: `unreachable`, or the relay's refusal."""
        url = f"{self._base}/api/onboarding/check-online?agent_id={quote(agent, safe='')}"
        try:
            answer = await self._http.get(url, timeout_s)
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


def _refusal(answer: Answer) -> RelayError:
    members = answer.members
    code = text_of(members.get("code"))
    if code is None:
        return RelayError("unreachable", "The server at this address is not an Agent Relay.")
    return RelayError(
        known_code(code),
        said_text(members.get("detail")) or said_text(members.get("title")),
        said_text(members.get("hint")),
        retry=known_retry(members.get("retry")),
        retry_after=asked_wait_s(members.get("retry_after_ms")) or RETRY_AFTER_S,
    )
