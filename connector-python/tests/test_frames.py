"""What a relay says, whatever that is."""

import json
import re
import unittest
from pathlib import Path
from typing import Any
from unittest.mock import Mock

from agent_relay_connector.check_online import CheckOnline
from agent_relay_connector.credentials.vouching import Verdict
from agent_relay_connector.delivery_judge import DeliveryJudge, IncomingEnvelope
from agent_relay_connector.errors import RelayError, final_close
from agent_relay_connector.frames import AckFrame, DeliverFrame, ErrorFrame, HelloFrame, read_frame
from agent_relay_connector.http import Answer, HttpClient
from agent_relay_connector.read_envelope import read_envelope
from agent_relay_connector.receipts.session_records import SessionRecords
from agent_relay_connector.replay_guard import ReplayGuard
from agent_relay_connector.sender_verifier import SenderVerifier
from agent_relay_connector.types import Notice
from agent_relay_connector.version import VERSION, is_outdated

SESSION = "ses_" + "0" * 26
# Escapes of a terminal in both their forms, ends of lines, marks of direction, halves of a character.
ACTING = "\x1b[2J\x9b2J\r\n\x7f\u2028\u061c\u200f\u202e\u2066\ud83d\u200b\ufeff\U000e0041"
ESCAPED = r"\u001b[2J\u009b2J\u000d\u000a\u007f\u2028\u061c\u200f\u202e\u2066\ud83d\u200b\ufeff\udb40\udc41"
ENVELOPE: dict[str, Any] = {
    **{"id": "e-1", "type": "message.send", "from": "agent://a", "to": "agent://b"},
    **{"payload": {}, "ts": 1_790_000_000_000, "key_id": "a-1", "sig": "s"},
}
PACKAGE = Path(__file__).parent.parent



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
            decision: Any = {**ENVELOPE, "type": "session.approve", "to": "agent://alice", "payload": {"session_id": named}}
            delivery = await judge.judge(IncomingEnvelope(decision, None, 0))
            assert delivery is not None
            self.assertEqual(delivery.session_id, known)


class Frames(unittest.TestCase):
    def test_of_any_form_break_nothing(self) -> None:
        unknown = ['{"frame":"new"}', '{"frame":"notice","notice":"new"}']
        texts: list[object] = [b"x", "", "[]", *unknown, "[" * 50_000, "nul"]
        for text in texts:
            self.assertIsNone(read_frame(text))
        hello = read_frame('{"frame":"hello","limits":{"heartbeat_interval_ms":"x","max_unacknowledged":1e9}}')
        self.assertEqual(hello, HelloFrame(None, None, 15, 300_000, 64, None))
        ack = read_frame('{"frame":"ack","envelope_id":7,"target_delivery":[]}')
        assert isinstance(ack, AckFrame)
        self.assertFalse(ack.delivery.can_deliver_realtime)

    def test_ask_for_four_heartbeats_a_second_at_most_and_one_a_minute_at_least(self) -> None:
        for asked_ms, interval_s in (("1", 0.25), ("1e-300", 0.25), ("400", 0.4), ("0", 15), ("-1", 15), ("1e300", 60)):
            hello = read_frame('{"frame":"hello","limits":{"heartbeat_interval_ms":%s}}' % asked_ms)
            assert isinstance(hello, HelloFrame)
            self.assertEqual(hello.heartbeat_interval_s, interval_s)

    def test_of_a_relay_tell_a_time_or_none_and_no_wait_without_end(self) -> None:
        latest = 8_640_000_000_000_000
        none = (("1e300", None), ("-1", None), ("1.5", None), (str(latest + 1), None))
        for said, time_ms in (("1e3", 1000), (str(latest), latest), *none):
            for kind in ("hello", "error"):
                frame = read_frame(f'{{"frame":"{kind}","server_time":{said}}}')
                assert isinstance(frame, (HelloFrame, ErrorFrame))
                self.assertEqual(frame.server_time, time_ms)
        for asked, wait_s in (("1e290", 3600), ("1500", 1.5), ("0", 1), ("-5", 1), ('"5"', 1), ("1e400", 1)):
            frame = read_frame(f'{{"frame":"error","retry_after_ms":{asked}}}')
            assert isinstance(frame, ErrorFrame)
            self.assertEqual(frame.retry_after_s, wait_s, asked)

    def test_an_envelope_has_its_signed_members_and_no_other(self) -> None:
        self.assertEqual(read_envelope({**ENVELOPE, "more": 1}), ENVELOPE)
        times: list[dict[str, Any]] = [{"ts": "1"}, {"ts": 1.5}, {"ts": True}]
        others: list[dict[str, Any]] = [{"id": 1}, {"to": None}, {"payload": []}, *times]
        for changes in others:
            self.assertIsNone(read_envelope({**ENVELOPE, **changes}), changes)

    def test_an_envelope_has_a_payload_that_the_relay_would_take(self) -> None:
        deep: object = []
        for _ in range(5000):
            deep = [deep]
        payloads: list[dict[str, object]] = [{"a": deep}, {"a": [[]] * 2000}, {"__proto__": 1}]
        for payload in payloads:
            self.assertIsNone(read_envelope({**ENVELOPE, "payload": payload}))

    def test_an_envelope_has_members_as_long_as_the_protocol_lets_them_be(self) -> None:
        # Repeated, each is of the right form but for its length.
        longest = {"id": 128, "key_id": 128, "task_id": 128, "from": 8 + 63, "type": 8 + 32}
        for name, most in longest.items():
            text = str({"task_id": "", **ENVELOPE}[name])
            held, too_long = (text + "x" * (length - len(text)) for length in (most, most + 1))
            self.assertIsNotNone(read_envelope({**ENVELOPE, name: held}), name)
            self.assertIsNone(read_envelope({**ENVELOPE, name: too_long}), name)
        for changes in ({"id": "e 1"}, {"key_id": ""}, {"task_id": ""}, {"from": "b"}, {"type": "Message.send"}):
            self.assertIsNone(read_envelope({**ENVELOPE, **changes}), changes)


class Closes(unittest.TestCase):
    def test_that_are_final_have_a_code(self) -> None:
        codes = {code: error.code for code in range(1000, 5000) if (error := final_close(code)) is not None}
        policy = dict.fromkeys((1003, 1007, 1008, 1009), "policy")
        self.assertEqual(codes, {**policy, 4403: "key_revoked", 4409: "superseded"})


class Version(unittest.TestCase):
    def test_is_that_of_the_package_and_of_the_other_connector(self) -> None:
        project = re.search(r'^version = "(.+)"$', (PACKAGE / "pyproject.toml").read_text(), re.MULTILINE)
        other = json.loads((PACKAGE.parent / "connector" / "package.json").read_text())
        self.assertEqual([VERSION, VERSION], [project and project[1], other["version"]])

    def test_is_outdated_by_a_higher_number_and_by_another_build_of_its_own(self) -> None:
        numbers = (("0.2.0-ba", "0.1.9-bb"), ("0.10.0", "0.9.0"), ("1.0.0-ba", "0.9.9-ba"), ("0.1.1-ba", "0.1.0"))
        for offered, own in (*numbers, ("0.1.0-b0123456789ab", "0.1.0-bba9876543210")):
            self.assertTrue(is_outdated(offered, own), offered)

    def test_is_outdated_by_nothing_else(self) -> None:
        for own in ("0.1.0-ba", "0.1.0"):
            for offered in ("0.1.0", "0.1.0-ba", "0.0.9-bb", None, "", "newest", f"0.2.0-{'b' * 65}", "0.2.0\n"):
                self.assertFalse(is_outdated(offered, own), (offered, own))
