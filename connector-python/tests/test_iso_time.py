"""Times of issuer records and key files."""

import unittest

from agent_relay_connector.iso_time import epoch_ms_of


class ATime(unittest.TestCase):
    def test_is_read_as_the_relay_reads_it(self) -> None:
        read = {
            "2026-09-21T14:13:20Z": 1_790_000_000_000,
            "2026-09-21T14:13:20.9999Z": 1_790_000_000_999,
            "2026-09-21T16:13:20+02:00": 1_790_000_000_000,
            "2026-09-21T13:43:20-00:30": 1_790_000_000_000,
            "1969-12-31T23:59:59.9Z": -100,
            "0000-02-29T00:00:00Z": -62_162_121_600_000,
            "0001-01-01T00:00:00+01:00": -62_135_600_400_000,
            "9999-12-31T23:59:59-23:59": 253_402_387_139_000,
        }
        self.assertEqual({text: epoch_ms_of(text) for text in read}, read)

    def test_that_the_relay_refuses_is_refused(self) -> None:
        clocks = ["00:00Z", "00:00.5Z", "24:00:00Z", "23:59:60Z", "00:60:00Z", "00:00:00.Z", "00:00:00", "00:00:00z"]
        offsets = ["+12:60", "+24:00", "+1:00", "+0100"]
        texts = [f"2026-01-01T{clock}" for clock in [*clocks, *(f"00:00:00{offset}" for offset in offsets)]]
        texts += ["2026-02-29T00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01 00:00:00Z", "٢026-01-01T00:00:00Z"]
        for text in texts:
            self.assertIsNone(epoch_ms_of(text), text)
