"""What a relay says, whatever that is."""

import json
import unittest
from unittest.mock import Mock

from agent_relay_connector.check_online import CheckOnline
from agent_relay_connector.credentials.vouching import Verdict
from agent_relay_connector.delivery_judge import DeliveryJudge, IncomingEnvelope
from agent_relay_connector.errors import RelayError
from agent_relay_connector.frames import AckFrame, DeliverFrame, ErrorFrame, HelloFrame, read_frame
from agent_relay_connector.http import Answer, HttpClient
from agent_relay_connector.receipts.session_records import SessionRecords
from agent_relay_connector.replay_guard import ReplayGuard
from agent_relay_connector.sender_verifier import SenderVerifier
from agent_relay_connector.types import Envelope, Notice

SESSION = "ses_" + "0" * 26
# Escapes of a terminal in both their forms, ends of lines, marks of direction, halves of a character.
ACTING = "\x1b[2J\x9b2J\r\n\x7f\u2028\u061c\u200f\u202e\u2066\ud83d\u200b\ufeff\U000e0041"
ESCAPED = r"\u001b[2J\u009b2J\u000d\u000a\u007f\u2028\u061c\u200f\u202e\u2066\ud83d\u200b\ufeff\udb40\udc41"


class Texts(unittest.IsolatedAsyncioTestCase):
    def error(self, **members: str) -> ErrorFrame:
        frame = read_frame(json.dumps({"frame": "error", **members}))
        assert isinstance(frame, ErrorFrame)
        return frame

    def test_act_on_nothing_that_shows_or_logs_them(self) -> None:
        error = self.error(message=f"so {ACTING}", hint=f"so {ACTING}")
        self.assertEqual((error.message, error.hint), (f"so {ESCAPED}", f"so {ESCAPED}"))
        released = read_frame(json.dumps({"frame": "notice", "notice": "released", "reason": ACTING}))
        assert isinstance(released, Notice)
        self.assertEqual(released.members["reason"], ESCAPED)
        ack = read_frame(json.dumps({"frame": "ack", "session_status": ACTING}))
        assert isinstance(ack, AckFrame)
        self.assertEqual(ack.session_status, ESCAPED)

    def test_are_bounded(self) -> None:
        for character in ("x", "\n", "\U0001f44d"):
            error = self.error(message=character * 30_000)
            self.assertEqual(len(error.message or ""), 1000)
            (error.message or "").encode()

    async def test_of_an_answer_over_http_act_on_nothing(self) -> None:
        http = Mock(HttpClient)
        http.get.return_value = Answer(400, {"code": "a_later_one", "retry": "fix", "detail": ACTING * 1000, "hint": ACTING})
        with self.assertRaises(RelayError) as caught:
            await CheckOnline("http://relay", http).presence_of("agent://bob")
        self.assertEqual(caught.exception.hint, ESCAPED)
        self.assertEqual(len(caught.exception.message), 1000)


class AConnection(unittest.TestCase):
    def test_has_an_id_that_can_be_signed_or_none(self) -> None:
        most = "c" * 128
        for said, known in (("con_Az09-_", "con_Az09-_"), (most, most), (f"{most}c", None), ("\ud800", None), (7, None)):
            hello = read_frame(json.dumps({"frame": "hello", "connection_id": said}))
            assert isinstance(hello, HelloFrame)
            self.assertEqual(hello.connection_id, known)


class Sessions(unittest.IsolatedAsyncioTestCase):
    def test_have_an_id_of_one_or_none(self) -> None:
        for said, known in ((SESSION, SESSION), (f"{SESSION}0", None), ("x" * 30_000, None), (1, None)):
            deliver = read_frame(json.dumps({"frame": "deliver", "envelope": {}, "session_id": said}))
            assert isinstance(deliver, DeliverFrame)
            self.assertEqual(deliver.session_id, known)
            ack = read_frame(json.dumps({"frame": "ack", "session_id": said}))
            assert isinstance(ack, AckFrame)
            self.assertEqual(ack.session_id, known or "")

    async def test_that_a_decision_names_have_an_id_of_one_or_none(self) -> None:
        verifier, guard = Mock(SenderVerifier), Mock(ReplayGuard)
        verifier.check.return_value = Verdict("agent")
        guard.is_reused.return_value = guard.is_repeat.return_value = guard.is_stale.return_value = False
        judge = DeliveryJudge(
            agent="agent://alice",
            verifier=verifier,
            replay_guard=guard,
            require_verified=False,
            sealing_keys=Mock(),
            sessions=SessionRecords("agent://alice"),
            replier=Mock(),
        )
        for named, known in ((SESSION, SESSION), ("x" * 30_000, None)):
            envelope: Envelope = {
                "id": "d-1",
                "type": "session.approve",
                "from": "agent://bob",
                "to": "agent://alice",
                "payload": {"session_id": named},
                "ts": 1_790_000_000_000,
                "key_id": "k",
                "sig": "A" * 86,
            }
            delivery = await judge.judge(IncomingEnvelope(envelope, None, 0))
            assert delivery is not None
            self.assertEqual(delivery.session_id, known)
