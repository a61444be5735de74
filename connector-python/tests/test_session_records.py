"""What is kept of sessions, and what is missing of a receipt."""

import json
import unittest
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from typing import Any

from agent_relay_connector import RelayError, verify_receipt
from agent_relay_connector.limits import MAX_OF_A_KIND, MAX_SESSION_RECORD_BYTES, MAX_SESSION_RECORDS
from agent_relay_connector.receipts.contract import ReceiptProblem
from agent_relay_connector.receipts.read_receipt import read_receipt
from agent_relay_connector.receipts.session_records import SessionRecords
from agent_relay_connector.types import Envelope, JsonObject

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
        records = SessionRecords("agent://alice")
        records.keep("s", decision, bobs)
        self.assertEqual(self.missing_of(records, "s"), ["request"])
        self.assertEqual(self.missing_of(records, "unknown"), ["request", "decision"])


ALICE, BOB = "agent://alice", "agent://acme.bob"
# About as large as a frame may be.
LARGE = "\U0001f44d" * 8000
FLOOD = 2 * MAX_SESSION_RECORD_BYTES // len(LARGE.encode())


class Kept(unittest.TestCase):
    def setUp(self) -> None:
        self.records = SessionRecords(ALICE)
        self.bobs = credential()
        self.alices = credential(sub=ALICE)

    def request(self, purpose: str = "talk", sender: str = BOB, to: str = ALICE) -> Envelope:
        return self.envelope("session.request", sender, to, {"purpose": purpose})

    def approval(self, session_id: str) -> Envelope:
        request = self.records.request_of(session_id, BOB)
        payload = {"session_id": session_id, "request_sha256": None if request is None else request.digest}
        return self.envelope("session.approve", ALICE, BOB, payload)

    def envelope(self, kind: str, sender: str, to: str, payload: JsonObject) -> Envelope:
        return {
            "id": "e-1",
            "type": kind,
            "from": sender,
            "to": to,
            "payload": payload,
            "ts": NOW * 1000,
            "key_id": self.bobs.key_id,
            "sig": "A" * 86,
        }

    def missing_of(self, session_id: str) -> list[str]:
        with self.assertRaises(RelayError) as caught:
            self.records.receipt(session_id)
        return list(caught.exception.missing)

    def test_comes_back_as_it_was_received(self) -> None:
        request = self.request("caf\u00e9 \U0001f44d")
        self.records.keep("s", request, self.bobs)
        approval = self.approval("s")
        self.records.keep("s", approval, self.alices)
        receipt = self.records.receipt("s")
        self.assertEqual((receipt["request"], receipt["decision"]), (request, approval))
        self.assertEqual(receipt["credentials"], [self.bobs.token, self.alices.token])

    def receipt(self) -> Any:
        self.records.keep("s", self.request("caf\u00e9"), self.bobs)
        self.records.keep("s", self.approval("s"), self.alices)
        return self.records.receipt("s")

    def test_as_a_receipt_is_read_from_text_or_bytes_with_a_byte_order_mark_or_without(self) -> None:
        receipt = self.receipt()
        text = json.dumps(receipt, ensure_ascii=False)
        for marked in (text, "\ufeff" + text):
            self.assertEqual(read_receipt(marked), receipt)
            self.assertEqual(read_receipt(marked.encode()), receipt)
            self.assertEqual(read_receipt(bytearray(marked.encode())), receipt)

    def test_as_a_receipt_is_malformed_in_utf_16_and_the_problem_names_that(self) -> None:
        text = json.dumps(self.receipt())
        for given in (BOM_UTF16_LE + text.encode("utf-16-le"), BOM_UTF16_BE + text.encode("utf-16-be")):
            self.assertEqual(verify_receipt(given, []).problem, ReceiptProblem("malformed", reason="utf_16"))

    def test_as_a_receipt_is_malformed_where_it_is_no_text_in_utf_8(self) -> None:
        receipt: Any = self.receipt()
        text = json.dumps(receipt, ensure_ascii=False)
        for given in ("\ufeff\ufeff" + text, text.encode("latin-1"), receipt, None, 1):
            self.assertEqual(verify_receipt(given, []).problem, ReceiptProblem("malformed"))

    def test_is_bounded_in_bytes_and_takes_no_room_of_sessions_in_which_this_agent_signed(self) -> None:
        self.records.keep("decided", self.request(), self.bobs)
        self.records.keep("decided", self.approval("decided"), self.alices)
        self.records.keep("requested", self.request(sender=ALICE, to=BOB), self.alices)
        self.records.keep("undecided", self.request(), self.bobs)
        large = self.request(LARGE)
        for n in range(FLOOD):
            self.records.keep(f"s{n}", large, self.bobs)
        self.assertEqual(self.records.receipt("decided")["version"], 1)
        self.assertEqual(self.missing_of("requested"), ["decision"])
        self.assertIsNone(self.records.request_of("undecided", BOB))
        kept = [n for n in range(FLOOD) if self.records.request_of(f"s{n}", BOB) is not None]
        self.assertLessEqual(len(kept) * len(LARGE.encode()), MAX_SESSION_RECORD_BYTES)
        self.assertIn(FLOOD - 1, kept)

    def test_of_this_agent_gives_way_to_newer_sessions_of_it(self) -> None:
        large = self.request(LARGE, sender=ALICE, to=BOB)
        for n in range(FLOOD):
            self.records.keep(f"s{n}", large, self.alices)
        self.assertEqual(self.missing_of("s0"), ["request", "decision"])
        self.assertEqual(self.missing_of(f"s{FLOOD - 1}"), ["decision"])

    def test_is_of_the_newest_sessions_and_few_of_each(self) -> None:
        for n in range(MAX_SESSION_RECORDS + 1):
            self.records.keep(f"s{n}", self.request(), self.bobs)
        self.assertIsNone(self.records.request_of("s0", BOB))
        self.assertIsNotNone(self.records.request_of("s1", BOB))
        for n in range(MAX_OF_A_KIND):
            self.records.keep("s1", self.request(str(n)), self.bobs)
        self.records.keep("s1", self.request(sender="agent://eve"), self.bobs)
        self.assertIsNone(self.records.request_of("s1", "agent://eve"))

    def test_is_no_message(self) -> None:
        self.records.keep("s", self.envelope("message.send", BOB, ALICE, {}), self.bobs)
        self.assertEqual(self.missing_of("s"), ["request", "decision"])
