"""What is kept of sessions, what is missing of a receipt, and what a receipt shows."""

import base64
import json
import unittest
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from typing import Any

from agent_relay_connector import RelayError, verify_receipt
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.canonical import signed_part
from agent_relay_connector.keys import signing_key
from agent_relay_connector.limits import MAX_OF_A_KIND, MAX_SESSION_RECORDS, MAX_SESSION_RECORD_BYTES
from agent_relay_connector.receipts.contract import ReceiptProblem
from agent_relay_connector.receipts.read_receipt import read_receipt
from agent_relay_connector.receipts.receipt import request_digest
from agent_relay_connector.receipts.session_records import SessionRecords
from agent_relay_connector.types import Envelope, JsonObject

from .issued import ACME, NOW, D, credential
from .kit import KEY

ALICE, BOB = "agent://alice", "agent://acme.bob"
# About as large as a frame may be.
LARGE = "\U0001f44d" * 8000
FLOOD = 2 * MAX_SESSION_RECORD_BYTES // len(LARGE.encode())
# Keys of issued.py: bob's, and another for alice.
KEYS = {BOB: signing_key({"alg": "ed25519", "private_key": D}), ALICE: signing_key(KEY)}
ALICES_JWK = {"kty": "OKP", "crv": "Ed25519", "x": KEYS[ALICE].public_key}
ISSUERS = [{**ACME, "agents": ["agent://acme.*", ALICE]}]
CROCKFORD = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghjkmnpqrstvwxyz")


def session_of(digest: str) -> str:
    """As an outsider would make it from the protocol."""
    return "ses_00" + base64.b32encode(base64.urlsafe_b64decode(digest + "=")[:15]).decode().translate(CROCKFORD)


class AReceipt(unittest.TestCase):
    def setUp(self) -> None:
        self.credentials = {BOB: credential(), ALICE: credential(sub=ALICE, cnf={"jwk": ALICES_JWK})}
        payload: JsonObject = {"purpose": "talk", "ttl_minutes": 30}
        self.request = self.signed({"type": "session.request", "from": BOB, "to": ALICE, "payload": payload})
        digest = request_digest(self.request)
        self.payload = {"session_id": session_of(digest), "request_sha256": digest}

    def signed(self, members: dict[str, Any]) -> Envelope:
        sender = members["from"]
        envelope: Any = {"id": "e-1", "ts": NOW * 1000, "key_id": self.credentials[sender].key_id, **members}
        envelope["sig"] = encode_base64url(KEYS[sender].sign(signed_part(envelope).encode()))
        return envelope  # type: ignore[no-any-return]

    def decision(self, kind: str = "session.approve", **changes: Any) -> Envelope:
        return self.signed({"type": kind, "from": ALICE, "to": BOB, "payload": self.payload, **changes})

    def receipt(self, **changes: Any) -> JsonObject:
        tokens = [self.credentials[agent].token for agent in (BOB, ALICE)]
        return {"version": 1, "request": self.request, "decision": self.decision(), "credentials": tokens, **changes}

    def test_shows_who_agreed_on_what_or_did_not(self) -> None:
        for kind, shown in (("session.approve", "approved"), ("session.reject", "rejected")):
            facts = verify_receipt(json.dumps(self.receipt(decision=self.decision(kind))), ISSUERS).facts
            assert facts is not None
            self.assertEqual((facts.requester, facts.target, facts.decision), (BOB, ALICE, shown))
            self.assertEqual((facts.session_id, facts.requested_at), (self.payload["session_id"], NOW * 1000))

    def test_shows_nothing_where_a_part_of_it_is_another(self) -> None:
        bobs, alices = (self.credentials[agent].token for agent in (BOB, ALICE))
        other_session = {**self.payload, "session_id": session_of("A" * 43)}
        forged = self.decision()
        forged["sig"] = self.decision(id="e-2")["sig"]
        turns: list[tuple[dict[str, Any], ReceiptProblem]] = [
            ({"more": 1}, ReceiptProblem("malformed")),
            ({"decision": self.decision(to=ALICE)}, ReceiptProblem("parties")),
            ({"request": {**self.request, "payload": {"purpose": "another"}}}, ReceiptProblem("digest")),
            ({"decision": self.decision(payload=other_session)}, ReceiptProblem("session")),
            ({"decision": self.decision(ts=NOW * 1000 - 301_000)}, ReceiptProblem("time", reason="before_request")),
            ({"decision": self.decision(ts=NOW * 1000 + 1_801_000)}, ReceiptProblem("time", reason="after_end")),
            ({"decision": forged}, ReceiptProblem("signature", "decision")),
            ({"credentials": [alices]}, ReceiptProblem("credential", "request", "key_mismatch")),
            ({"credentials": [bobs]}, ReceiptProblem("credential", "decision", "key_mismatch")),
        ]
        for changes, problem in turns:
            self.assertEqual(verify_receipt(json.dumps(self.receipt(**changes)), ISSUERS).problem, problem, changes)


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

    def test_is_no_request_of_a_gateway(self) -> None:
        self.records.keep("s", self.approval("s"), self.alices)
        self.assertEqual(self.missing_of("s"), ["request"])
        self.assertEqual(self.missing_of("unknown"), ["request", "decision"])

    def test_is_no_message(self) -> None:
        self.records.keep("s", self.envelope("message.send", BOB, ALICE, {}), self.bobs)
        self.assertEqual(self.missing_of("s"), ["request", "decision"])
