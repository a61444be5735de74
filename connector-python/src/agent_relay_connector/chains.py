"""Order among tasks."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from .background import Background


class Chains:
    """Runs the tasks of one name one after the other, in order; names do not wait for each other."""

    def __init__(self, background: Background) -> None:
        self._background = background
        # By name, as long as a task of it is to end.
        self._last: dict[str, asyncio.Task[None]] = {}

    def add(self, name: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        task = self._background.spawn(_after(self._last.get(name), work))
        self._last[name] = task
        task.add_done_callback(lambda ended: self._forget(name, ended))

    async def settled(self) -> None:
        """Returns when all that was added so far has ended."""
        if self._last:
            await asyncio.wait(list(self._last.values()))

    def _forget(self, name: str, ended: "asyncio.Task[None]") -> None:
        if self._last.get(name) is ended:
            del self._last[name]


async def _after(former: "asyncio.Task[None] | None", work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    if former is not None:
        await asyncio.wait([former])
    await work()
