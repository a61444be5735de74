"""Credentials, issuers, thumbprints, and keys of gateways."""

import hashlib
import json
import unittest
from typing import Any

from agent_relay_connector import RelayError
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.credentials.contract import CredentialReason
from agent_relay_connector.credentials.issuers import Issuers
from agent_relay_connector.credentials.jws import is_token_signed_by
from agent_relay_connector.credentials.public_jwk import is_public_key, thumbprint_of
from agent_relay_connector.credentials.read_credential import read_credential
from agent_relay_connector.gateway_keys import read_gateway_keys
from agent_relay_connector.keys import ed25519_verify_key, signing_key

from .issued import ACME, ISSUER_KEY, NOW, THUMBPRINT, D, X, credential, token, valid

# RFC 8037, appendix A.4.
SIGNED = (
    "eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc."
    "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"
)


class Tokens(unittest.TestCase):
    def test_rfc_8037_a_4_and_a_5(self) -> None:
        key = ed25519_verify_key(X)
        self.assertTrue(is_token_signed_by(key, SIGNED))
        self.assertFalse(is_token_signed_by(key, SIGNED.replace("RXhh", "RXhi")))
        own = signing_key({"alg": "ed25519", "private_key": D})
        text = SIGNED.rpartition(".")[0]
        self.assertEqual(f"{text}.{encode_base64url(own.sign(text.encode()))}", SIGNED)
        self.assertEqual(own.public_key, X)

    def test_rfc_8037_a_3_is_the_thumbprint(self) -> None:
        self.assertEqual(thumbprint_of(X, "Ed25519"), THUMBPRINT)

    def test_is_read_as_it_was_issued(self) -> None:
        read = credential(aud=["relay.example"], nbf=NOW + 1)
        self.assertEqual((read.issuer, read.agent, read.key_id), ("acme", "agent://acme.bob", f"jkt-{THUMBPRINT}"))
        self.assertEqual((read.issued_at, read.expires_at), (NOW * 1000, (NOW + 3600) * 1000))
        self.assertEqual((read.not_before, read.audience), ((NOW + 1) * 1000, ("relay.example",)))

    def test_no_header_chooses_how_it_is_checked(self) -> None:
        kid = thumbprint_of(ISSUER_KEY.public_key or "", "Ed25519")
        head: dict[str, Any] = {"alg": "Ed25519", "typ": "relay-credential+jwt", "kid": kid}
        others: list[dict[str, Any]] = [
            {"jku": "https://x"},
            {"crit": []},
            {"alg": "none"},
            {"alg": "HS256"},
            {"typ": "JWT"},
            {"kid": 1},
        ]
        for changes in others:
            self.assertIsNone(read_credential(token(header={**head, **changes})), changes)
        self.assertIsNotNone(read_credential(token(header={**head, "alg": "EdDSA"})))

    def test_malformed_claims_make_no_credential(self) -> None:
        small = {"kty": "OKP", "crv": "Ed25519", "x": encode_base64url(bytes(32))}
        private = {"kty": "OKP", "crv": "Ed25519", "x": X, "d": D}
        others: list[dict[str, Any]] = [
            {"iss": "a b"},
            {"sub": "agent://UPPER"},
            {"cnf": {"jwk": small}},
            {"cnf": {"jwk": private}},
            {"enc": {"jwk": {"kty": "OKP", "crv": "X25519", "x": encode_base64url(bytes(32))}}},
            {"iat": NOW + 0.5},
            {"iat": True},
            {"exp": NOW},
            {"exp": NOW + 90 * 86_400 + 1},
            {"aud": [1]},
        ]
        for changes in others:
            self.assertIsNone(read_credential(token(valid(**changes))), changes)

    def test_a_member_that_stands_twice_makes_no_credential(self) -> None:
        text = json.dumps(valid())
        self.assertIsNone(read_credential(token(text[:-1] + ',"iss":"acme"}')))
        self.assertIsNotNone(read_credential(token(text)))

    def test_garbage_is_refused(self) -> None:
        for text in (None, "", "..", "a.b.c", "." * 2048, "x" * 2049, token() + "=", token() + ".x"):
            self.assertIsNone(read_credential(text))


class AnIssuer(unittest.TestCase):
    def problem(self, record: dict[str, Any] | None = None, at: int = NOW, **changes: Any) -> CredentialReason | None:
        return Issuers([record or ACME]).problem_at(credential(**changes), at * 1000)

    def test_vouches_for_its_agents_within_the_term(self) -> None:
        self.assertIsNone(self.problem())
        self.assertIsNone(self.problem(at=NOW - 60))
        self.assertEqual(self.problem(at=NOW - 61), "not_yet_valid")
        self.assertIsNone(self.problem(at=NOW + 3599))
        self.assertEqual(self.problem(at=NOW + 3600), "expired")
        self.assertEqual(self.problem(iss="globex"), "unknown_issuer")
        self.assertEqual(self.problem(sub="agent://globex.bob"), "agent_not_allowed")

    def test_ends_with_the_term_of_its_key(self) -> None:
        key = {**ACME["keys"][0], "not_before": "2026-09-21T14:13:20Z", "expires_at": "2026-09-21T16:13:18+01:00"}
        self.assertEqual(self.problem({**ACME, "keys": [key]}, at=NOW + 3598), "expired")
        self.assertEqual(self.problem({**ACME, "keys": [key]}, at=NOW - 1), "not_yet_valid")

    def test_has_only_what_its_key_signed(self) -> None:
        signed = token()
        forged = read_credential(signed[:-86] + encode_base64url(bytes(64)))
        assert forged is not None
        self.assertEqual(Issuers([ACME]).problem_at(forged, NOW * 1000), "signature")

    def test_takes_back_what_it_issued_by_then(self) -> None:
        before = {"agent": "agent://acme.bob", "issued_before": "2026-09-21T14:13:21Z"}
        self.assertTrue(Issuers([{**ACME, "revoked": [before]}]).is_revoked(credential()))
        self.assertFalse(Issuers([{**ACME, "revoked": [before]}]).is_revoked(credential(iat=NOW + 1)))
        self.assertTrue(Issuers([{**ACME, "revoked": [{**before, "agent": "*"}]}]).is_revoked(credential()))

    def test_of_all_patterns_the_most_specific_says_whose_an_agent_is(self) -> None:
        other = signing_key({"alg": "ed25519", "private_key": D}).public_key
        rest = {"issuer": "rest", "keys": [{"public_key": other}], "agents": ["*"]}
        issuers = Issuers([{**ACME, "agents": ["agent://acme.*", "agent://acme.x.bob"]}, rest])
        self.assertTrue(issuers.names("agent://acme.x.y"))
        self.assertFalse(issuers.names("agent://globex"))

    def test_cannot_be_used_when_its_record_is_ambiguous_or_misspelt(self) -> None:
        records: list[list[object]] = [
            [ACME, ACME],
            [{**ACME, "revokd": []}],
            [{**ACME, "agents": []}],
            [{**ACME, "agents": ["agent://*"]}],
            [{**ACME, "keys": [{"public_key": "x"}]}],
            [{**ACME, "keys": [{**ACME["keys"][0], "expires_at": "tomorrow"}]}],
            [{**ACME, "revoked": [{"agent": "*"}]}],
            [None],
        ]
        for listed in records:
            with self.assertRaises(RelayError) as raised:
                Issuers(listed)
            self.assertEqual(raised.exception.code, "invalid_issuer")


class PublicKeys(unittest.TestCase):
    def test_of_small_order_are_none_in_any_encoding(self) -> None:
        prime = 2**255 - 19
        for number in (0, 1, prime - 1, prime, prime + 1, 2**255 - 1, 2**255):
            point = encode_base64url(number.to_bytes(32, "little"))
            self.assertFalse(is_public_key(point, "Ed25519"), number)
        for number in (0, 1, prime - 1, prime, prime + 1, 2**256 - 1):
            self.assertFalse(is_public_key(encode_base64url(number.to_bytes(32, "little")), "X25519"), number)


class GatewayKeys(unittest.TestCase):
    def test_have_the_digest_of_their_key_for_an_id(self) -> None:
        public = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
        key_id = "gateway-" + encode_base64url(hashlib.sha256(public.encode()).digest())[:22]
        listed = {"key_id": key_id, "alg": "ed25519", "public_key": public}
        self.assertEqual(list(read_gateway_keys([listed, {**listed, "key_id": "gateway-x"}, None])), [key_id])
        self.assertEqual(read_gateway_keys({}), {})
