"""How tests move time."""

import asyncio
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

# Ends a test that hangs. Nothing promises this time.
GENEROUS_S = 50.0


def later(seconds: float) -> AbstractContextManager[Any]:
    """It is so much later for the running event loop: what was to come by then comes now."""
    loop = asyncio.get_running_loop()
    now = loop.time
    return patch.multiple(loop, time=lambda: now() + seconds, slow_callback_duration=seconds + 1)
