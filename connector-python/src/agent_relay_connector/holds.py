"""What the relay refused for the moment. Source: docs/protocol.md#sends."""

import asyncio
from collections.abc import Callable

from .backoff import jittered_s
from .errors import RelayError
from .pending_sends import Hold, PendingSend, Scope, Scopes

# No target, and no kind.
_ALL = ""


class Holds:
    """Each refusal holds what it is about, and nothing else: `unavailable`, `rate_limited` or `not_registered`."""

    def __init__(self, over: Callable[[str], None]) -> None:
        """over: the time of the hold of this scope is over."""
        self._over = over
        # By kind, by target, and all of the agent. Each has a send, or a hold whose time runs.
        self._scopes: dict[str, Scope] = {}

    def scopes_of(self, kind: str, to: str) -> Scopes:
        """For a send that is added next."""
        return self._scope(_ALL), self._scope(_kind_of(kind)), self._scope(to)

    def begin(self, send: PendingSend, refusal: RelayError, retry_after_s: float) -> list[PendingSend]:
        """Returns the sends under it whose calls end before it does."""
        everything, kind, target = send.scopes
        scope = {"unavailable": target, "rate_limited": kind, "not_registered": everything}[refusal.code]
        scope.end()
        wait_s = jittered_s(retry_after_s)
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + wait_s
        scope.hold = Hold(refusal, ends_at, loop.call_later(wait_s, self._time_is_over, scope))
        return scope.sends.take_while(lambda each: each.deadline <= ends_at)

    def answered(self, send: PendingSend) -> None:
        """What held the send, and let it out again, is past."""
        for scope in send.scopes:
            if scope.hold is not None and scope.hold.timer is None:
                scope.hold = None

    def forget_unused(self, scopes: Scopes) -> None:
        """The send was removed: what nothing else waits under is past with its time."""
        for scope in scopes:
            self._forget_if_unused(scope)

    def clear(self) -> None:
        for scope in tuple(self._scopes.values()):
            scope.end()
            self._forget_if_unused(scope)

    def _scope(self, name: str) -> Scope:
        return self._scopes.setdefault(name, Scope(name))

    def _time_is_over(self, scope: Scope) -> None:
        assert scope.hold is not None
        scope.hold.timer = None
        self._forget_if_unused(scope)
        self._over(scope.name)

    def _forget_if_unused(self, scope: Scope) -> None:
        is_running = scope.hold is not None and scope.hold.timer is not None
        if not scope.sends and not is_running:
            self._scopes.pop(scope.name, None)


def _kind_of(kind: str) -> str:
    """The relay may limit each type of a session's envelopes by itself; messages are one kind, whatever they are called."""
    return "message.*" if kind.startswith("message.") else kind
