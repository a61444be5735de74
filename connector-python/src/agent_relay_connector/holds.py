"""What the relay refused for the moment. Source: docs/protocol.md#sends."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from .backoff import jittered_s
from .errors import RelayError

# No target, and no kind.
_ALL = ""


class Held(Protocol):
    """Of a send: what a refusal may hold."""

    @property
    def type(self) -> str: ...
    @property
    def to(self) -> str: ...


@dataclass(eq=False)
class Hold:
    """While its time runs, nothing goes out under it; then one envelope at a time, until one is answered otherwise."""

    # What the relay said.
    refusal: RelayError
    # By the event loop's clock.
    ends_at: float
    # None once its time is over.
    timer: asyncio.TimerHandle | None


class Holds:
    """Each refusal holds what it is about, and nothing else: `unavailable`, `rate_limited` or `not_registered`."""

    def __init__(self, is_needed: Callable[[Hold], bool], over: Callable[[], None]) -> None:
        """is_needed: whether something waits under it. over: the time of one is over."""
        self._is_needed = is_needed
        self._over = over
        # By kind, by target, and all of the agent.
        self._holds: dict[str, Hold] = {}

    def of(self, send: Held) -> list[Hold]:
        """Those that a send is under."""
        return [self._holds[scope] for scope in _scopes_of(send) if scope in self._holds]

    def begin(self, send: Held, refusal: RelayError, retry_after_s: float) -> None:
        scopes = {"unavailable": send.to, "rate_limited": _kind_of(send.type), "not_registered": _ALL}
        scope = scopes[refusal.code]
        self._end(scope)
        wait_s = jittered_s(retry_after_s)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(wait_s, self._time_is_over, scope)
        self._holds[scope] = Hold(refusal, loop.time() + wait_s, timer)

    def answered(self, send: Held) -> None:
        """What held the send, and let it out again, is past."""
        for scope in _scopes_of(send):
            if scope in self._holds and self._holds[scope].timer is None:
                del self._holds[scope]

    def given_up(self, send: Held) -> None:
        """The send ended without an answer: what nothing else waits under is past with its time."""
        for scope in _scopes_of(send):
            hold = self._holds.get(scope)
            if hold is not None and hold.timer is None:
                self._drop_unneeded(scope, hold)

    def outlast(self, time_s: float) -> bool:
        """Whether the time of one ends no sooner. time_s: by the event loop's clock."""
        return any(hold.timer is not None and hold.ends_at >= time_s for hold in self._holds.values())

    def clear(self) -> None:
        for scope in tuple(self._holds):
            self._end(scope)

    def _time_is_over(self, scope: str) -> None:
        hold = self._holds[scope]
        hold.timer = None
        self._drop_unneeded(scope, hold)
        self._over()

    def _drop_unneeded(self, scope: str, hold: Hold) -> None:
        if not self._is_needed(hold):
            del self._holds[scope]

    def _end(self, scope: str) -> None:
        hold = self._holds.pop(scope, None)
        if hold is not None and hold.timer is not None:
            hold.timer.cancel()


def last_of(holds: Iterable[Hold]) -> Hold | None:
    """The one that ends last of those whose time runs."""
    running = [hold for hold in holds if hold.timer is not None]
    return max(running, key=lambda hold: hold.ends_at) if running else None


def _scopes_of(send: Held) -> tuple[str, str, str]:
    return _ALL, _kind_of(send.type), send.to


def _kind_of(kind: str) -> str:
    """The relay may limit each type of a session's envelopes by itself; messages are one kind, whatever they are called."""
    return "message.*" if kind.startswith("message.") else kind
