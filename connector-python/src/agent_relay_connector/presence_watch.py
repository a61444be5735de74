"""Waits for agents to come online."""

import asyncio
from dataclasses import dataclass

from .backoff import growing_s
from .background import Background
from .check_online import CheckOnline
from .errors import RelayError
from .limits import PRESENCE_CAP_S, PRESENCE_LOOKS_AT_ONCE
from .target_not_online import target_not_online
from .types import Presence


@dataclass(eq=False)
class _Watch:
    """One agent, for all who wait for it."""

    # That it is online, or why it never can be.
    decided: "asyncio.Future[Presence]"
    # What check-online said last of how it is; None before it did.
    status: str | None = None
    waiting: int = 0
    asking: "asyncio.Task[None] | None" = None


class PresenceWatch:
    """Asks check-online again and again, for one agent once whoever waits."""

    def __init__(self, check_online: CheckOnline, max_waiting: int, background: Background) -> None:
        self._check_online = check_online
        self._max_waiting = max_waiting
        self._background = background
        self._at_once = asyncio.Semaphore(PRESENCE_LOOKS_AT_ONCE)
        self._watches: dict[str, _Watch] = {}
        self._waiting = 0
        self._ended_by: RelayError | None = None

    async def until_online(self, agent: str, timeout_s: float) -> Presence:
        """Returns when what is sent to the agent would reach it.

        Raises `target_not_online` after that time, `timeout` when check-online did not answer in it, at once its
        refusal, `queue_full`, and what ended the connector.
        """
        if self._ended_by is not None:
            raise self._ended_by
        if self._waiting >= self._max_waiting:
            raise RelayError("queue_full")
        watch = self._watches.get(agent) or self._begin(agent)
        self._waiting += 1
        watch.waiting += 1
        try:
            await asyncio.wait((watch.decided,), timeout=max(0.0, timeout_s))
        finally:
            self._waiting -= 1
            watch.waiting -= 1
            if watch.waiting == 0:
                self._end(agent, watch)
        if watch.decided.done():
            return watch.decided.result()
        if watch.status is not None:
            raise target_not_online(watch.status)
        raise RelayError("timeout", "Whether the target is online is not known: check-online did not answer.")

    def end(self, error: RelayError) -> None:
        """Ends all that wait, and all that come."""
        self._ended_by = error
        for watch in self._watches.values():
            watch.decided.set_exception(error)
        self._watches.clear()

    def _begin(self, agent: str) -> _Watch:
        watch = _Watch(asyncio.get_running_loop().create_future())
        # Whoever waited may be gone.
        watch.decided.add_done_callback(lambda decided: decided.cancelled() or decided.exception())
        self._watches[agent] = watch
        watch.asking = self._background.spawn(self._look_again(agent, watch))
        return watch

    def _end(self, agent: str, watch: _Watch) -> None:
        if watch.asking is not None:
            watch.asking.cancel()
        if self._watches.get(agent) is watch:
            del self._watches[agent]

    async def _look_again(self, agent: str, watch: _Watch) -> None:
        attempt = 0
        while watch.waiting > 0 and not watch.decided.done():
            wait_s = growing_s(attempt, PRESENCE_CAP_S)
            try:
                async with self._at_once:
                    presence = await self._check_online.presence_of(agent)
                watch.status = presence.status
                if presence.can_deliver_realtime:
                    self._decide(agent, watch).set_result(presence)
                    return
            except RelayError as error:
                if error.retry != "later":
                    self._decide(agent, watch).set_exception(error)
                    return
                wait_s = max(wait_s, error.retry_after or 0)
            attempt += 1
            await asyncio.sleep(wait_s)

    def _decide(self, agent: str, watch: _Watch) -> "asyncio.Future[Presence]":
        """Who waits from now on asks anew."""
        self._watches.pop(agent, None)
        return watch.decided
