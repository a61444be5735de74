"""Items in an order in which no two are equal."""

from bisect import bisect_left
from collections.abc import Callable
from itertools import takewhile
from typing import Generic, TypeVar

Item = TypeVar("Item")


class SortedList(Generic[Item]):
    def __init__(self, key: Callable[[Item], tuple[float, ...]]) -> None:
        self._key = key
        # Of each item its key, and the item.
        self._entries: list[tuple[tuple[float, ...], Item]] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def first(self) -> Item | None:
        return self._entries[0][1] if self._entries else None

    def add(self, item: Item) -> None:
        self._entries.insert(self._index_of(item), (self._key(item), item))

    def remove(self, item: Item) -> None:
        """Nothing happens where it is not."""
        index = self._index_of(item)
        if index < len(self._entries) and self._entries[index][1] is item:
            del self._entries[index]

    def take_while(self, holds: Callable[[Item], bool]) -> list[Item]:
        """The first items, as far as the condition holds."""
        return list(takewhile(holds, (item for _, item in self._entries)))

    def _index_of(self, item: Item) -> int:
        """Where it is, or would be."""
        return bisect_left(self._entries, (self._key(item), item))
