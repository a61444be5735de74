"""The canonical text, and what is read of JSON."""

import json
import struct
import unittest
from pathlib import Path
from typing import Any

from agent_relay_connector import RelayError
from agent_relay_connector.base64url import decode_base64url, encode_base64url
from agent_relay_connector.clock import Clock
from agent_relay_connector.jcs import canonicalize
from agent_relay_connector.keys import signing_key
from agent_relay_connector.payload_rules import is_payload
from agent_relay_connector.signer import Signer
from agent_relay_connector.strict_json import parse_json, parse_unique_json

# RFC 8785, appendix B: the bits of a double, and its text.
NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]

# RFC 8785, sections 3.2.2 and 3.2.3.
SAMPLE = r"""{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"""
SAMPLE_CANONICAL = (
    '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
    '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
)
SORTED = ["\r", "1", "\x80", "\u00f6", "\u20ac", "\U0001f602", "\ufb33"]

# The vectors of RFC 8785's author; they are handed over apart from this repository.
PUBLISHED = Path(__file__).resolve().parents[3] / "shared" / "vectors" / "jcs"


class CanonicalForm(unittest.TestCase):
    def test_numbers_are_written_as_ecmascript_writes_them(self) -> None:
        for bits, text in NUMBERS:
            (number,) = struct.unpack(">d", bytes.fromhex(bits))
            self.assertEqual(canonicalize(number), text)

    def test_the_sample_of_rfc_8785(self) -> None:
        self.assertEqual(canonicalize(parse_json(SAMPLE)), SAMPLE_CANONICAL)

    def test_names_are_sorted_by_utf_16_code_units(self) -> None:
        text = canonicalize({name: 0 for name in reversed(SORTED)})
        self.assertEqual(list(json.loads(text)), SORTED)

    @unittest.skipUnless(PUBLISHED.is_dir(), "the published vectors are not at hand")
    def test_the_published_vectors(self) -> None:
        inputs = sorted((PUBLISHED / "input").glob("*.json"))
        self.assertGreater(len(inputs), 0)
        for path in inputs:
            expected = (PUBLISHED / "output" / path.name).read_text(encoding="utf-8")
            self.assertEqual(canonicalize(parse_json(path.read_text(encoding="utf-8"))), expected.strip(), path.name)

    def test_what_readers_would_take_for_something_else_is_refused(self) -> None:
        cycle: list[object] = []
        cycle.append(cycle)
        values: list[Any] = [2**53, float("inf"), float("nan"), "\ud800", {"\udc00": 1}, {1: 2}, {1, 2}, b"x", cycle]
        for value in values:
            with self.assertRaises(ValueError):
                canonicalize(value)


class Json(unittest.TestCase):
    def test_of_a_member_that_stands_twice_the_last_counts_or_it_is_refused(self) -> None:
        self.assertEqual(parse_json('{"a":1,"a":2}'), {"a": 2})
        for text in ('{"a":1,"a":2}', '[{"b":{"a":1,"\\u0061":2}}]'):
            with self.assertRaises(ValueError):
                parse_unique_json(text)

    def test_long_integers_are_doubles(self) -> None:
        self.assertEqual(repr(parse_json("9007199254740991")), "9007199254740991")
        self.assertEqual(repr(parse_json("9007199254740993")), "9007199254740992.0")
        self.assertEqual(repr(parse_json("1" + "0" * 5000)), "inf")

    def test_what_is_not_json_is_refused(self) -> None:
        for text in ("NaN", "[Infinity]", "-Infinity", "", "{'a':1}", "[1] x", "[" * 100_000):
            with self.assertRaises(ValueError):
                parse_json(text)


class Base64url(unittest.TestCase):
    def test_one_value_has_one_text(self) -> None:
        self.assertEqual(decode_base64url("-_8"), b"\xfb\xff")
        self.assertEqual(encode_base64url(b"\xfb\xff"), "-_8")
        for text in ("-_9", "-_8=", "-_8\n", "+/8", "A", "é", None, 1):
            self.assertIsNone(decode_base64url(text))


class Payloads(unittest.TestCase):
    def test_depth_and_size_are_bounded(self) -> None:
        def nested(levels: int) -> dict[str, object]:
            return {} if levels == 1 else {"a": nested(levels - 1)}

        self.assertTrue(is_payload(nested(32)))
        self.assertFalse(is_payload(nested(33)))
        self.assertTrue(is_payload({"a": list(range(1999))}))
        self.assertFalse(is_payload({"a": list(range(2000))}))

    def test_what_the_relay_would_not_take_is_not_signed(self) -> None:
        signer = Signer({"key_id": "k", "alg": "hmac-sha256", "secret": "A" * 43}, Clock())
        members = {"id": "i", "type": "message.send", "from": "agent://ann", "to": "agent://bob"}
        nested: Any = []
        for _ in range(900):
            nested = [nested]
        for payload in ({"a": nested}, {"a": tuple(range(2000))}, {"a": [{"__proto__": 1}]}):
            with self.assertRaises(RelayError) as raised:
                signer.draft({**members, "payload": payload})
            self.assertEqual(raised.exception.code, "invalid_envelope")
            self.assertEqual([error.field for error in raised.exception.errors], ["payload"])
        self.assertTrue(signer.draft({**members, "payload": {"a": tuple(range(1999))}}))

    def test_what_the_relay_would_not_take_is_refused(self) -> None:
        named: list[Any] = [{"__proto__": 1}, {"a": [{"__proto__": 1}]}]
        values: list[Any] = [[], None, "x", *named, {"a": "\ud800"}, {"a": float("inf")}]
        for value in values:
            self.assertFalse(is_payload(value))


class Keys(unittest.TestCase):
    def test_a_secret_of_less_than_32_bytes_is_none(self) -> None:
        secrets: list[Any] = [encode_base64url(bytes(31)), "x", None]
        for secret in secrets:
            with self.assertRaises(RelayError):
                signing_key({"alg": "hmac-sha256", "secret": secret})
