"""Listeners of the application."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, Literal

from .background import Background, log
from .errors import RelayError

EventName = Literal["state", "delivery", "notice", "error", "warning", "overflow"]
Listener = Callable[[Any], object]


# Others can cause what is reported: no more texts than these are remembered, and further ones are not logged.
_MAX_LOGGED = 100


class Emitter:
    """One that raises is reported as `error`; the others are still called. What nobody listens to is logged."""

    def __init__(self) -> None:
        # Never cancelled: a listener may itself close the connector.
        self._background = Background()
        self._listeners: dict[EventName, list[Listener]] = {}
        # What the log has, since the agent was last registered.
        self._logged: set[str] = set()

    def on(self, event: EventName, listener: Listener) -> Callable[[], None]:
        """Returns a function that removes the listener."""
        listeners = self._listeners.setdefault(event, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener) if listener in listeners else None

    def has_listeners(self, event: EventName) -> bool:
        return bool(self._listeners.get(event))

    def is_new(self, text: str) -> bool:
        """Whether the log has no such text yet. From now on it has."""
        if text in self._logged or len(self._logged) == _MAX_LOGGED:
            return False
        self._logged.add(text)
        return True

    def log_anew(self) -> None:
        """The agent is registered: what fails from now on is another failure."""
        self._logged.clear()

    def emit(self, event: EventName, value: Any) -> None:
        if event in ("error", "warning") and not self.has_listeners(event):
            # Of a listener of the application also what it raised; a cause of another error may have what others sent.
            threw = value.__cause__ if value.code == "listener_failed" else None
            if threw is not None or self.is_new(value.message):
                log.warning("%s: %s %s", value.code, value.message, value.hint, exc_info=threw)
        for listener in tuple(self._listeners.get(event, ())):
            self._call(event, listener, value)

    def _call(self, event: EventName, listener: Listener, value: Any) -> None:
        try:
            result = listener(value)
        except (Exception, asyncio.CancelledError) as cause:
            # The latter of its own: nothing of the connector's is cancelled here.
            self._failed(event, cause)
            return
        if inspect.isawaitable(result):
            self._background.spawn(self._settle(event, result))

    async def _settle(self, event: EventName, result: Any) -> None:
        try:
            await result
        except Exception as cause:
            self._failed(event, cause)

    def _failed(self, event: EventName, cause: BaseException) -> None:
        if event == "error":
            log.error("a listener of errors failed", exc_info=cause)
            return
        error = RelayError("listener_failed")
        error.__cause__ = cause
        self.emit("error", error)
