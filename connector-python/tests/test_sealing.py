"""HPKE, sealed payloads, and the keys that open them."""

import unittest
from unittest.mock import patch

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from agent_relay_connector import RelayError
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.clock import Clock
from agent_relay_connector.given import SealingKey
from agent_relay_connector.limits import SEALING_KEY_KEPT_MS
from agent_relay_connector.read_envelope import read_envelope
from agent_relay_connector.sealing.hpke import Ciphertext, open_bytes, raw_public, seal_bytes, seal_with
from agent_relay_connector.sealing.own_sealing_keys import OwnSealingKeys
from agent_relay_connector.sealing.sealed_payload import open_payload, plaintext_of, seal_payload
from agent_relay_connector.sealing.sealing_keys import SealingKeys
from agent_relay_connector.types import Envelope, JsonObject

from .issued import NOW, credential

# RFC 9180, appendix A.1.1, and its first encryption: the one of a single-shot.
INFO = bytes.fromhex("4f6465206f6e2061204772656369616e2055726e")
PUBLIC = bytes.fromhex("3948cfe0ad1ddb695d780e59077195da6c56506b027329794ab02bca80815c4d")
PRIVATE = bytes.fromhex("4612c550263fc8ad58375df3f557aac531d26850903e55a9f23f21d8534e8ac8")
EPHEMERAL = bytes.fromhex("52c4a758a802cd8b936eceea314432798d5baf2d7e9235dc084ab1b9cfa2f736")
ENC = bytes.fromhex("37fda3567bdbd628e88668c3c8d7e97d1d1253b6d4ea6d44c150f741f1bf4431")
PLAINTEXT = bytes.fromhex("4265617574792069732074727574682c20747275746820626561757479")
AAD = bytes.fromhex("436f756e742d30")
CT = bytes.fromhex("f938558b5d72f1a23810b4be2ab4f84331acc02fc97babc53a52ae8218a355a96d8770ac83d07bea87e13c512a")
KEY = X25519PrivateKey.from_private_bytes(PRIVATE)


class Rfc9180(unittest.TestCase):
    def test_a_1_1_is_sealed_and_opens(self) -> None:
        ephemeral = X25519PrivateKey.from_private_bytes(EPHEMERAL)
        self.assertEqual(seal_with(ephemeral, PUBLIC, PLAINTEXT, INFO, AAD), Ciphertext(ENC, CT))
        self.assertEqual(open_bytes(KEY, Ciphertext(ENC, CT), INFO, AAD), PLAINTEXT)

    def test_it_opens_in_no_other_context(self) -> None:
        others = [
            (Ciphertext(ENC, CT), b"", AAD),
            (Ciphertext(ENC, CT), INFO, b"Count-1"),
            (Ciphertext(ENC, CT[:-1] + b"x"), INFO, AAD),
            (Ciphertext(PUBLIC, CT), INFO, AAD),
            (Ciphertext(bytes(32), CT), INFO, AAD),
        ]
        for sealed, info, aad in others:
            with self.assertRaises((InvalidTag, ValueError)):
                open_bytes(KEY, sealed, info, aad)

    def test_each_time_another_key_of_its_own_is_used(self) -> None:
        one, two = (seal_bytes(PUBLIC, PLAINTEXT, INFO, AAD) for _ in range(2))
        self.assertNotEqual(one.enc, two.enc)
        self.assertEqual(open_bytes(KEY, one, INFO, AAD), PLAINTEXT)


class ASealedPayload(unittest.TestCase):
    keys = OwnSealingKeys(Clock(), [encode_base64url(PRIVATE)])

    def envelope(self, payload: JsonObject) -> Envelope:
        surroundings = {"id": "env-1", "type": "message.send", "from": "agent://a", "to": "agent://b", "task_id": "t"}
        read = read_envelope({**surroundings, "payload": payload, "ts": 1, "key_id": "k", "sig": "s"})
        assert read is not None
        return read

    def sealed(self) -> JsonObject:
        return seal_payload(plaintext_of({"n": 1}), self.envelope({}), encode_base64url(PUBLIC))

    def test_opens_in_its_envelope_alone(self) -> None:
        envelope = self.envelope(self.sealed())
        self.assertEqual(open_payload(envelope, self.keys), {"n": 1})
        others = {"id": "e", "type": "message.other", "from": "agent://c", "to": "agent://c", "task_id": "other"}
        for name, other in others.items():
            moved = read_envelope(dict(envelope) | {name: other})
            assert moved is not None
            self.assertIsNone(open_payload(moved, self.keys), name)
        self.assertIsNone(open_payload(envelope, OwnSealingKeys(Clock(), [])))

    def test_has_one_form(self) -> None:
        members = self.sealed()["sealed"]
        others: list[JsonObject] = [{"v": 2}, {"v": True}, {"more": 1}, {"kid": "x"}, {"enc": "x"}, {"ct": ""}]
        for changes in others:
            payload = {"sealed": {**members, **changes}}
            self.assertIsNone(open_payload(self.envelope(payload), self.keys), changes)
        self.assertIsNone(open_payload(self.envelope({**self.sealed(), "more": 1}), self.keys))

    def test_is_of_what_the_relay_would_take(self) -> None:
        refused: list[tuple[JsonObject, str]] = [
            ({"a": {1}}, "invalid_envelope"),
            ({"a": "x" * 23_000}, "frame_too_large"),
        ]
        for payload, code in refused:
            with self.assertRaises(RelayError) as raised:
                plaintext_of(payload)
            self.assertEqual(raised.exception.code, code)


class OwnSealingKeysOf(unittest.TestCase):
    first, second = (encode_base64url(bytes([number] * 32)) for number in (1, 2))

    def keys(self, *given: str | SealingKey) -> OwnSealingKeys:
        self.clock = Clock()
        return OwnSealingKeys(self.clock, given)

    def kid(self, private_key: str) -> str:
        return next(iter(SealingKeys([private_key])))

    def sealed_to(self, private_key: str, seconds: int) -> dict[str, object]:
        key = SealingKeys([private_key])[self.kid(private_key)].private
        jwk = {"kty": "OKP", "crv": "X25519", "x": encode_base64url(raw_public(key))}
        return {"enc": {"jwk": jwk}, "exp": NOW + seconds}

    def opens(self, keys: OwnSealingKeys, at_ms: float) -> list[bool]:
        with patch.object(Clock, "bounded_now", return_value=at_ms):
            return [keys.get(self.kid(key)) is not None for key in (self.first, self.second)]

    def test_an_agent_open_until_ten_minutes_after_the_last_credential_and_not_longer(self) -> None:
        with patch.object(Clock, "bounded_now", return_value=NOW * 1000):
            keys = self.keys(self.first)
            keys.take(None, credential(**self.sealed_to(self.first, 100)))
            keys.take(None, credential(**self.sealed_to(self.first, 200)))
            keys.take([self.second], credential(**self.sealed_to(self.second, 3600)))
        end = NOW * 1000 + 200_000 + SEALING_KEY_KEPT_MS
        self.assertEqual(self.opens(keys, end - 1), [True, True])
        self.assertEqual(self.opens(keys, end), [False, True])

    def test_a_file_open_until_the_end_that_it_names(self) -> None:
        keys = self.keys(self.second, SealingKey(self.first, NOW * 1000))
        self.assertEqual(self.opens(keys, NOW * 1000 - 1), [True, True])
        self.assertEqual(self.opens(keys, NOW * 1000), [False, True])

    def test_another_credential_change_nothing_unless_there_are_none(self) -> None:
        keys = self.keys(self.first)
        for given in (None, [self.first]):
            with self.assertRaises(RelayError) as raised:
                keys.take(given, credential(**self.sealed_to(self.second, 3600)))
            self.assertEqual(raised.exception.code, "invalid_credential")
        self.assertIsNotNone(keys.get(self.kid(self.first)))
        self.keys().take(None, credential(**self.sealed_to(self.second, 3600)))
