"""Asks the relay whether an agent can be reached now. Source: docs/protocol.md#presence."""

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from .error_catalogue import known_retry
from .errors import RelayError
from .http import Answer, HttpClient
from .limits import PRESENCE_TIMEOUT_S
from .network_errors import no_relay_at, unreachable
from .refusal import problem_in
from .strict_json import text_of
from .types import Presence

_STATUSES = ("online", "stale", "offline", "not_seen")


class CheckOnline:
    def __init__(self, base: str, http: HttpClient) -> None:
        """base: address of the relay, without a slash at its end."""
        self.base = base
        self._http = http

    async def presence_of(self, agent: str, timeout_s: float = PRESENCE_TIMEOUT_S) -> Presence:
        """Raises RelayError: `unreachable`, `not_a_relay`, or the relay's refusal."""
        url = f"{self.base}/api/onboarding/check-online?agent_id={quote(agent, safe='')}"
        try:
            answer = await self._http.get(url, timeout_s)
        except (OSError, asyncio.TimeoutError) as cause:
            raise unreachable(self.base, cause) from cause
        status = answer.members.get("status")
        if answer.status != 200 or status not in _STATUSES:
            raise self._refusal(answer)
        return Presence(
            agent=agent,
            status=status,
            can_deliver_realtime=answer.members.get("can_deliver_realtime") is True,
            details=answer.members,
        )

    def _refusal(self, answer: Answer) -> RelayError:
        members = answer.members
        if _is_refusal(members):
            return problem_in(members)
        return no_relay_at(self.base, answer.status, answer.headers)


def _is_refusal(members: Mapping[str, Any]) -> bool:
    """What a relay answers, where it has check-online at all: each of its refusals says when to try again."""
    code = text_of(members.get("code"))
    return code is not None and code != "not_found" and known_retry(members.get("retry")) is not None
