"""What this machine's clock is corrected by, what is dated by it, waits, and limits of what takes time."""

import asyncio
import unittest
from unittest.mock import patch

from agent_relay_connector.backoff import backoff_s, jittered_s
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.clock import Clock, machine_ms
from agent_relay_connector.given import AgentKey
from agent_relay_connector.signer import Signer
from agent_relay_connector.spacing import Spacing
from agent_relay_connector.within import within

NOW_MS = 1_790_000_000_000
HOUR_MS = 3_600_000


class TheClock(unittest.TestCase):
    def off_after(self, *told: tuple[float, float]) -> float:
        clock = Clock()
        with patch("agent_relay_connector.clock.machine_ms", return_value=NOW_MS):
            for off_ms, elapsed_s in told:
                clock.measure(NOW_MS + off_ms, elapsed_s)
            return clock.now() - NOW_MS

    def test_stays_where_it_may_be_right(self) -> None:
        for told in ([(-4900, 5.0)], [(-329, 0.33), (-1, 0.002)], [(1900, 0.01)], [(-2050, 0.1)]):
            self.assertEqual(self.off_after(*told), 0)

    def test_moves_by_the_middle_of_what_it_may_be_wrong_by(self) -> None:
        self.assertEqual(self.off_after((HOUR_MS - 1000, 2.0)), HOUR_MS)
        self.assertEqual(self.off_after((-HOUR_MS, 0.1)), -HOUR_MS + 50)

    def test_believes_the_quickest_answer_most_and_begins_anew_after_a_clock_was_set(self) -> None:
        told = ((HOUR_MS - 5000, 6.0), (HOUR_MS - 10, 0.02), (HOUR_MS - 3000, 4.0))
        self.assertEqual(self.off_after(*told), HOUR_MS)
        self.assertEqual(self.off_after((HOUR_MS, 0.02), (-30, 0.04)), 0)
        self.assertEqual(self.off_after((-30, 0.04), (HOUR_MS, 0.02)), HOUR_MS + 10)

    def test_dates_an_answer_not_before_what_it_answers_as_far_as_the_relay_takes_it(self) -> None:
        key: AgentKey = {"key_id": "k", "alg": "ed25519", "private_key": encode_base64url(bytes(32))}
        signer = Signer(key, Clock())
        with patch("agent_relay_connector.clock.machine_ms", return_value=NOW_MS):
            for ahead_ms, expected in ((-1000, 0), (290_000, 290_000), (300_001, 0)):
                self.assertEqual(signer.sign("{}", NOW_MS + ahead_ms).ts - NOW_MS, expected)

    def test_follows_the_relay_to_sign_and_within_bounds_to_judge(self) -> None:
        clock = Clock()
        clock.measure(machine_ms() - 3_600_000)
        self.assertAlmostEqual(clock.now(), machine_ms() - 3_600_000, delta=1000)
        self.assertAlmostEqual(clock.bounded_now(), machine_ms() - 300_000, delta=1000)
        self.assertFalse(clock.is_trusted)


class Waits(unittest.TestCase):
    def test_are_random_up_to_a_bound_that_doubles(self) -> None:
        for attempt, bound in ((0, 0.25), (1, 0.5), (4, 4), (5, 5), (5000, 5)):
            waits = [backoff_s(attempt) for _ in range(200)]
            self.assertLessEqual(max(waits), bound)
            self.assertGreater(max(waits), bound / 2)
            self.assertLess(min(waits), bound / 2)
        self.assertTrue(all(2 <= jittered_s(2) <= 3 for _ in range(200)))


class ASpacing(unittest.TestCase):
    def test_grows_up_to_its_cap_and_starts_again_after_a_long_time(self) -> None:
        spacing, distances = Spacing(60), []
        with patch("time.monotonic") as now:
            now.return_value = 1000.0
            self.assertEqual(spacing.left_s(), 0)
            for _ in range(9):
                spacing.happens()
                distances.append(spacing.left_s())
                now.return_value += distances[-1]
            self.assertEqual(distances, [0.5, 1, 2, 4, 8, 16, 32, 60, 60])
            self.assertEqual(spacing.left_s(), 0)
            spacing.happens()
            self.assertEqual(spacing.left_s(at_most_s=1), 1)
            now.return_value += 120
            spacing.happens()
            self.assertEqual(spacing.left_s(), 0.5)


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
