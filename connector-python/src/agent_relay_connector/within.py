"""What takes time, up to a limit."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def within(work: Coroutine[Any, Any, T], timeout_s: float) -> T:
    """Raises asyncio.TimeoutError. Nobody waits for the end of what is given up.

    `asyncio.wait_for` before Python 3.12 swallows a cancellation that comes together with the result.
    """
    task = asyncio.create_task(work)
    # Whoever waited may be gone.
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    try:
        await asyncio.wait((task,), timeout=timeout_s)
        if not task.done():
            raise asyncio.TimeoutError
        return task.result()
    finally:
        task.cancel()
