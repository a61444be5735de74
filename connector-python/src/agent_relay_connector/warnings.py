"""What works, and should be changed nevertheless."""

from .emitter import Emitter
from .error_catalogue import CONNECTOR_ERRORS
from .types import Warning
from .version import VERSION, is_outdated


class Warnings:
    """Tells the application."""

    def __init__(self, emitter: Emitter) -> None:
        self._emitter = emitter
        # The version that was warned of.
        self._outdated_by: str | None = None

    def compare_version(self, offered: str | None) -> None:
        if not is_outdated(offered) or offered == self._outdated_by:
            return
        self._outdated_by = offered
        message = f"The relay hands out connector {offered}; this is {VERSION}."
        hint = "GET /connectors at the relay has the path of its packages."
        self._emitter.emit("warning", Warning("outdated_connector", message, hint))

    def clock_untrusted(self) -> None:
        entry = CONNECTOR_ERRORS["clock_untrusted"]
        self._emitter.emit("warning", Warning("clock_untrusted", entry.message, entry.hint))
