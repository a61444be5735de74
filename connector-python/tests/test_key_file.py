"""Key files: what they hold, their text, and the times in them."""

import codecs
import json
import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

from agent_relay_connector import RelayError
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.file_text import decode_text
from agent_relay_connector.given import SealingKey
from agent_relay_connector.iso_time import epoch_ms_of
from agent_relay_connector.key_file import read_key_file

from .issued import ACME
from .kit import SEED

OTHER_SEED = encode_base64url(bytes(range(1, 33)))
TEXT = "ä€😀"


class AKeyFile(unittest.TestCase):
    def read(self, content: object) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "key.json")
            text = content if isinstance(content, (str, bytes)) else json.dumps(content)
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
            return read_key_file(str(path))

    def test_names_the_agent_and_its_key(self) -> None:
        file = self.read({"agent_id": "agent://a", "key_id": "a-1", "alg": "ed25519", "private_key": SEED})
        self.assertEqual(file.key, {"key_id": "a-1", "alg": "ed25519", "private_key": SEED})
        file = self.read({"agent_id": "agent://a", "key_id": "a-1", "alg": "hmac-sha256", "secret": SEED})
        self.assertEqual(file.key, {"key_id": "a-1", "alg": "hmac-sha256", "secret": SEED})

    def test_may_have_a_byte_order_mark_and_the_line_ends_of_windows(self) -> None:
        record = {"agent_id": "agent://a", "key_id": "a-1", "alg": "ed25519", "private_key": SEED}
        text = json.dumps(record, indent=2).replace("\n", "\r\n")
        self.assertEqual(self.read(text.encode("utf-8-sig")).agent, "agent://a")

    def test_in_another_encoding_than_utf_8_is_named_with_how_to_write_it(self) -> None:
        utf_16 = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
        for content in (*(mark + "{}".encode(encoding) for mark, encoding in utf_16), b"{\xe4}"):
            with self.assertRaises(RelayError) as raised:
                self.read(content)
            self.assertEqual(raised.exception.code, "invalid_key")
            self.assertRegex(raised.exception.message, r"^The key file .*key\.json is not UTF-8\.$")
            self.assertIn("Set-Content -Encoding utf8", raised.exception.hint)

    def test_may_be_a_pipe_that_the_process_was_given(self) -> None:
        reading, writing = os.pipe()
        with open(reading, "rb"):
            with open(writing, "w") as given:
                given.write(json.dumps({"agent_id": "agent://a", "key_id": "a-1", "alg": "hmac-sha256", "secret": SEED}))
            self.assertEqual(read_key_file(f"/dev/fd/{reading}").agent, "agent://a")

    def test_may_be_named_by_a_path_object(self) -> None:
        with self.assertRaisesRegex(RelayError, "cannot be read"):
            read_key_file(Path("nowhere.json"))

    def test_that_is_no_regular_file_is_not_waited_for(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "pipe"))
            os.mkfifo(path)
            with self.assertRaisesRegex(RelayError, "is no regular file"):
                read_key_file(path)

    def test_may_have_former_sealing_keys_with_their_end(self) -> None:
        record: dict[str, Any] = {"agent_id": "agent://a", "key_id": "a-1", "alg": "ed25519", "private_key": SEED}
        former = {"private_key": OTHER_SEED, "until": "2026-09-21T14:13:20Z"}
        present, ended = SealingKey(SEED), SealingKey(OTHER_SEED, 1_790_000_000_000)
        self.assertEqual(self.read({**record, "sealing_key": [SEED, former]}).sealing_keys, (present, ended))
        self.assertEqual(self.read({**record, "sealing_key": SEED}).sealing_keys, (present,))
        refused: list[object] = [7, "x", {"private_key": SEED}, {**former, "until": "later"}, [former, None]]
        for sealing_key in refused:
            with self.assertRaises(RelayError) as raised:
                self.read({**record, "sealing_key": sealing_key})
            self.assertEqual(raised.exception.code, "invalid_key")

    def test_pins_records_of_issuers_and_nothing_else(self) -> None:
        record: dict[str, Any] = {"agent_id": "agent://a", "key_id": "a-1", "alg": "ed25519", "private_key": SEED}
        self.assertEqual(self.read({**record, "trusted_issuers": [ACME]}).trusted_issuers, (ACME,))
        self.assertEqual(self.read(record).trusted_issuers, ())
        refused: list[object] = ["acme", 7, None, ACME, ["acme"], [7], [{"issuer": "acme"}], [ACME, {}]]
        for trusted_issuers in refused:
            with self.assertRaises(RelayError) as raised:
                self.read({**record, "trusted_issuers": trusted_issuers})
            self.assertEqual(raised.exception.code, "invalid_key", trusted_issuers)

    def test_names_whom_the_agent_accepts_envelopes_from(self) -> None:
        record: dict[str, Any] = {"agent_id": "agent://a", "key_id": "a-1", "alg": "ed25519", "private_key": SEED}
        self.assertIsNone(self.read(record).accept_from)
        entries = ["agent://b", "agent://acme.*", "issuer:acme"]
        self.assertEqual(self.read({**record, "accept_from": entries}).accept_from, tuple(entries))
        self.assertEqual(self.read({**record, "accept_from": []}).accept_from, ())
        refused: list[object] = [None, "agent://b", ["b"], ["*"], ["agent://acme*"], ["issuer:"], [7], ["agent://b"] * 51]
        for accept_from in refused:
            with self.assertRaises(RelayError) as raised:
                self.read({**record, "accept_from": accept_from})
            self.assertEqual(raised.exception.code, "invalid_key", accept_from)

    def test_says_what_is_wrong_with_it_and_shows_no_key(self) -> None:
        contents: list[object] = ["{", [], {}, {"agent_id": "agent://a", "alg": "ed25519", "private_key": SEED}]
        for content in contents:
            with self.assertRaises(RelayError) as raised:
                self.read(content)
            self.assertEqual(raised.exception.code, "invalid_key")
            self.assertNotIn(SEED, str(raised.exception))


class TheTextOfAFile(unittest.TestCase):
    def test_has_no_byte_order_mark_of_utf_8_whether_the_file_has_one_or_not(self) -> None:
        self.assertEqual(decode_text(TEXT.encode()), TEXT)
        self.assertEqual(decode_text(TEXT.encode("utf-8-sig")), TEXT)
        self.assertEqual(decode_text(codecs.BOM_UTF8), "")
        self.assertEqual(decode_text(b""), "")

    def test_loses_one_mark_alone(self) -> None:
        self.assertEqual(decode_text("\ufeffa\ufeff".encode("utf-8-sig")), "\ufeffa\ufeff")

    def test_of_utf_16_is_none_however_short_it_is(self) -> None:
        for text in ("", "{}", TEXT):
            self.assertIsNone(decode_text(codecs.BOM_UTF16_LE + text.encode("utf-16-le")))
            self.assertIsNone(decode_text(codecs.BOM_UTF16_BE + text.encode("utf-16-be")))

    def test_of_utf_16_without_a_mark_is_none_unlike_one_that_holds_nul(self) -> None:
        for encoding in ("utf-16-le", "utf-16-be"):
            self.assertIsNone(decode_text("{}".encode(encoding)))
        for text in ("\0", "\0\0", "a\n\0"):
            self.assertEqual(decode_text(text.encode()), text)

    def test_of_other_bytes_is_none(self) -> None:
        self.assertIsNone(decode_text(b"{\xe4}"))


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
