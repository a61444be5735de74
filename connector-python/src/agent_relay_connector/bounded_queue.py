"""A bounded queue with asynchronous readers."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class BoundedQueue(Generic[T]):
    """What comes in cannot be held back at its source, so one item is dropped when it is full.

    It is the oldest of the sender with the most: who floods drops its own.
    """

    def __init__(self, most: int, sender_of: Callable[[T], str]) -> None:
        self._items: deque[T] = deque()
        self._most = most
        self._sender_of = sender_of
        self._changed = asyncio.Event()
        self._has_ended = False
        self._error: Exception | None = None

    def push(self, item: T) -> bool:
        """False when an item was dropped for it."""
        if self._has_ended:
            return True
        self._items.append(item)
        self._changed.set()
        if len(self._items) <= self._most:
            return True
        del self._items[self._oldest_of_most()]
        return False

    async def take(self) -> T | None:
        """The next item, when there is one. After the end: what is left, then None, or the error that ended it."""
        while not self._items:
            if self._error is not None:
                raise self._error
            if self._has_ended:
                return None
            self._changed.clear()
            await self._changed.wait()
        return self._items.popleft()

    def end(self, error: Exception | None = None) -> None:
        if self._has_ended:
            return
        self._has_ended = True
        self._error = error
        self._changed.set()

    def _oldest_of_most(self) -> int:
        senders = [self._sender_of(item) for item in self._items]
        counts = Counter(senders)
        most = max(counts.values())
        return next(n for n, sender in enumerate(senders) if counts[sender] == most)
