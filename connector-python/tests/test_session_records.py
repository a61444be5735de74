"""What is missing of a receipt."""

import unittest

from agent_relay_connector import RelayError
from agent_relay_connector.receipts.session_records import SessionRecords
from agent_relay_connector.types import Envelope

from .issued import NOW, credential


class Missing(unittest.TestCase):
    def missing_of(self, records: SessionRecords, session_id: str) -> list[str]:
        with self.assertRaises(RelayError) as caught:
            records.receipt(session_id)
        return list(caught.exception.missing)

    def test_of_a_session_that_the_gateway_requested_the_request_alone(self) -> None:
        bobs = credential()
        decision: Envelope = {
            "id": "d-1",
            "type": "session.approve",
            "from": "agent://acme.bob",
            "to": "agent://alice",
            "payload": {"session_id": "s", "request_sha256": "A" * 43},
            "ts": NOW * 1000,
            "key_id": bobs.key_id,
            "sig": "A" * 86,
        }
        records = SessionRecords()
        records.keep("s", decision, bobs)
        self.assertEqual(self.missing_of(records, "s"), ["request"])
        self.assertEqual(self.missing_of(records, "unknown"), ["request", "decision"])
