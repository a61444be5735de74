"""What this machine's clock is corrected by, and what is dated by it."""

import unittest
from unittest.mock import patch

from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.clock import Clock
from agent_relay_connector.given import AgentKey
from agent_relay_connector.signer import Signer

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
