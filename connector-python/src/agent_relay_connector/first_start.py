"""What is different until the agent is registered for the first time."""

import asyncio
import time
from collections.abc import Callable

from .check_online import CheckOnline
from .errors import RelayError
from .limits import (
    OWN_LOOK_AGAIN_S,
    OWN_LOOK_LIMITED_S,
    OWN_LOOK_TIMEOUT_S,
    OWN_LOOKS,
    UNKNOWN_KEY_PRESENTED_S,
)
from .network_errors import unreachable


class FirstStart:
    def __init__(
        self,
        agent: str,
        check_online: CheckOnline,
        take_over: bool,
        failed: Callable[[RelayError], None],
        ended: Callable[[RelayError], None],
    ) -> None:
        """failed: an attempt failed. ended: no further attempt may follow."""
        self._agent = agent
        self._check_online = check_online
        self._may_register = take_over
        self._failed = failed
        self._ended = ended
        self._is_over = False
        self._key_refused_at: float | None = None
        self._failure: RelayError | None = None

    async def before_register(self) -> None:
        """Before the first register, which would end the connection of whoever has the agent.

        Later ones are this connector's own reconnects: what is online then may be its own connection. Raises
        `superseded_elsewhere`.
        """
        if self._may_register:
            return
        if await self._stays_online():
            raise RelayError("superseded_elsewhere")
        self._may_register = True

    def may_pass(self, error: RelayError) -> bool:
        """Whether a refusal may pass by itself: the relay reads its keys file again within seconds of a change.

        Source: docs/protocol.md#keys.
        """
        if self._is_over or error.code != "unknown_key":
            return False
        if self._key_refused_at is None:
            self._key_refused_at = time.monotonic()
        if time.monotonic() - self._key_refused_at >= UNKNOWN_KEY_PRESENTED_S:
            return False
        self._tell(error)
        return True

    def unreachable(self, cause: Exception | None) -> None:
        """Says why no relay was reached, at every attempt of the connector's life.

        What cannot heal ends the first start alone.
        """
        error = unreachable(cause)
        self._tell(error)
        if not self._is_over and error.retry == "fix":
            self._ended(error)

    def time_is_over(self) -> None:
        """Says why the last attempt failed."""
        cause = self._failure
        if cause is None:
            self._ended(RelayError("timeout"))
            return
        error = RelayError("timeout", f"No answer came in time. {cause.message}", cause.hint)
        error.__cause__ = cause
        self._ended(error)

    def succeeded(self) -> None:
        """It is registered."""
        self._is_over = True

    def _tell(self, error: RelayError) -> None:
        self._failure = error
        self._failed(error)

    async def _stays_online(self) -> bool:
        """Asks again before it says so: the relay may not have seen yet that the socket of a killed process is gone."""
        for left in reversed(range(OWN_LOOKS)):
            wait_s = await self._wait_before_next_look()
            if wait_s is None:
                return False
            if left > 0:
                await asyncio.sleep(wait_s)
        return True

    async def _wait_before_next_look(self) -> float | None:
        """None when nobody has the agent; what cannot be looked up is not held against the start."""
        try:
            presence = await self._check_online.presence_of(self._agent, OWN_LOOK_TIMEOUT_S)
        except RelayError as error:
            is_limited = error.code == "rate_limited" and (error.retry_after or 0) <= OWN_LOOK_LIMITED_S
            return error.retry_after if is_limited else None
        return OWN_LOOK_AGAIN_S if presence.status == "online" else None
