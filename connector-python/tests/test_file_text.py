"""The text of a file, in the encodings that PowerShell writes."""

import codecs
import unittest

from agent_relay_connector.file_text import decode_text

TEXT = "ä€😀"


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
