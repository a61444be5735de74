"""Listeners of the application."""

import inspect
from collections.abc import Callable
from typing import Any, Literal

from .background import Background, log
from .errors import RelayError

EventName = Literal["state", "delivery", "notice", "error", "warning", "overflow"]
Listener = Callable[[Any], object]


class Emitter:
    """One that raises is reported as `error`; the others are still called. What nobody listens to is logged."""

    def __init__(self) -> None:
        # Never cancelled: a listener may itself close the connector.
        self._background = Background()
        self._listeners: dict[EventName, list[Listener]] = {}

    def on(self, event: EventName, listener: Listener) -> Callable[[], None]:
        """Returns a function that removes the listener."""
        listeners = self._listeners.setdefault(event, [])
        listeners.append(listener)
        return lambda: listeners.remove(listener) if listener in listeners else None

    def has_listeners(self, event: EventName) -> bool:
        return bool(self._listeners.get(event))

    def emit(self, event: EventName, value: Any) -> None:
        if event in ("error", "warning") and not self.has_listeners(event):
            log.warning("%s: %s %s", value.code, value.message, value.hint)
        for listener in tuple(self._listeners.get(event, ())):
            self._call(event, listener, value)

    def _call(self, event: EventName, listener: Listener, value: Any) -> None:
        try:
            result = listener(value)
        except Exception as cause:
            self._failed(event, cause)
            return
        if inspect.isawaitable(result):
            self._background.spawn(self._settle(event, result))

    async def _settle(self, event: EventName, result: Any) -> None:
        try:
            await result
        except Exception as cause:
            self._failed(event, cause)

    def _failed(self, event: EventName, cause: Exception) -> None:
        if event == "error":
            log.error("a listener of errors failed", exc_info=cause)
            return
        error = RelayError("listener_failed")
        error.__cause__ = cause
        self.emit("error", error)
