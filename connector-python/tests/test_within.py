"""Limits of what takes time."""

import asyncio
import unittest

from agent_relay_connector.within import within


class ALimit(unittest.IsolatedAsyncioTestCase):
    async def test_ends_what_takes_longer(self) -> None:
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def take() -> None:
            await never

        with self.assertRaises(asyncio.TimeoutError):
            await within(take(), 0)
        await asyncio.sleep(0)
        self.assertTrue(never.cancelled())

    async def test_swallows_no_cancellation_that_comes_with_the_result(self) -> None:
        result: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting: asyncio.Task[None]

        async def take() -> None:
            await result
            asyncio.get_running_loop().call_soon(lambda: waiting.cancel())

        waiting = asyncio.create_task(within(take(), 60))
        await asyncio.sleep(0)
        result.set_result(None)
        with self.assertRaises(asyncio.CancelledError):
            await waiting
