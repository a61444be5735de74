"""Waits for who is away, and look-ups of who is not known."""

import asyncio
import time
import unittest
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from typing import Any
from unittest.mock import patch

from agent_relay_connector import Presence, RelayError, Trust, presence_watch
from agent_relay_connector.background import Background
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.canonical import signed_part
from agent_relay_connector.check_online import CheckOnline
from agent_relay_connector.credentials import sender_credentials
from agent_relay_connector.credentials.allowance import Allowance
from agent_relay_connector.credentials.credential_cache import CredentialCache
from agent_relay_connector.credentials.sender_credentials import SenderCredentials
from agent_relay_connector.http import Answer, HttpClient
from agent_relay_connector.keys import signing_key
from agent_relay_connector.limits import (
    PRESENCE_LOOKS_AT_ONCE,
    RECIPIENT_AGAIN_AFTER_S,
    STRANGERS_AT_ONCE,
    STRANGERS_PER_MINUTE,
)
from agent_relay_connector.presence_watch import PresenceWatch
from agent_relay_connector.read_envelope import read_envelope
from agent_relay_connector.relay_manifest import RelayManifest
from agent_relay_connector.sender_verifier import SenderVerifier
from agent_relay_connector.types import Envelope, Verified

from .issued import ACME, NOW, THUMBPRINT, D, X, token
from .kit import later

KEY_ID = f"jkt-{THUMBPRINT}"
# To one address in a minute.
RELAY_ANSWERS = 600


class Relay(HttpClient):
    """Answers by path, and counts who asks, at once too."""

    def __init__(self) -> None:
        super().__init__({})
        self.asked: list[str] = []
        self.at_once = self.most_at_once = 0
        self.answer = Answer(404, {})
        self.answer_to: Callable[[str], Answer] = lambda _: self.answer
        self.held = asyncio.Event()
        self.held.set()

    async def get(self, url: str, timeout_s: float) -> Answer:
        self.asked.append(url)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self.held.wait()
        self.at_once -= 1
        return self.answer_to(url)


class Looking(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.relay = Relay()
        self.background = Background()
        self.credentials = SenderCredentials("", self.relay, self.background)

    async def asyncTearDown(self) -> None:
        await self.background.stop()


class ForCredentials(Looking):
    async def find(self, agent: str, is_stranger: bool) -> object:
        return await self.credentials.find(agent, KEY_ID, NOW * 1000, is_stranger)

    async def test_of_strangers_leaves_the_others_their_share(self) -> None:
        self.relay.held.clear()
        finding = [asyncio.create_task(self.find(f"agent://s{n}", True)) for n in range(50)]
        while len(self.relay.asked) < STRANGERS_AT_ONCE:
            await asyncio.sleep(0)
        known = asyncio.create_task(self.find("agent://acme.bob", False))
        while not self.relay.asked[-1].startswith("/v1/agents/acme.bob/"):
            await asyncio.sleep(0)
        self.assertEqual(self.relay.at_once, STRANGERS_AT_ONCE + 1)
        self.relay.held.set()
        await asyncio.gather(known, *finding)
        self.assertEqual(self.relay.most_at_once, STRANGERS_AT_ONCE + 1)

    async def test_of_strangers_ends_for_the_minute(self) -> None:
        for n in range(STRANGERS_PER_MINUTE + 10):
            await self.find(f"agent://s{n}", True)
        self.assertEqual(len(self.relay.asked), STRANGERS_PER_MINUTE)
        await self.find("agent://acme.bob", False)
        self.assertEqual(len(self.relay.asked), STRANGERS_PER_MINUTE + 1)

    async def test_is_not_repeated_for_who_has_none(self) -> None:
        for _ in range(3):
            self.assertIsNone(await self.find("agent://nobody", True))
        self.assertEqual(len(self.relay.asked), 1)

    async def test_of_strangers_pushes_out_nobody_whom_a_pinned_issuer_vouched_for(self) -> None:
        self.credentials._strangers = CredentialCache(10)
        self.relay.answer = Answer(200, {"credential": token()})
        self.assertIsNotNone(await self.find("agent://acme.bob", True))
        self.credentials.is_known("agent://acme.bob", KEY_ID)
        self.relay.answer = Answer(404, {})
        for n in range(11):
            await self.find(f"agent://s{n}", True)
        asked = len(self.relay.asked)
        self.assertIsNotNone(await self.find("agent://acme.bob", True))
        self.assertEqual(len(self.relay.asked), asked)
        await self.find("agent://s0", True)
        self.assertEqual(len(self.relay.asked), asked + 1)


class ForARecipient(Looking):
    async def find(self, needed_at: float | None = None) -> object:
        at = time.monotonic() if needed_at is None else needed_at
        return await self.credentials.find_recipient("agent://acme.bob", NOW * 1000, at)

    async def test_is_repeated_by_whoever_needs_it_after_there_was_none_once_a_second_for_all_of_them(self) -> None:
        self.assertIsNone(await self.find())
        asked_at = time.monotonic()
        self.relay.answer = Answer(200, {"credential": token()})
        found = await asyncio.gather(self.find(), self.find(), self.find())
        self.assertNotIn(None, found)
        self.assertGreater(time.monotonic() - asked_at, RECIPIENT_AGAIN_AFTER_S * 0.9)
        self.assertIsNotNone(await self.find())
        self.assertEqual(len(self.relay.asked), 2)

    async def test_that_began_before_it_was_needed_is_waited_for_without_asking_for_it_meanwhile(self) -> None:
        self.relay.held.clear()
        with patch.object(sender_credentials, "LOOK_UP_WAIT_S", 0), patch.object(
            sender_credentials, "RECIPIENT_AGAIN_AFTER_S", 0
        ), patch.object(self.credentials, "find", wraps=self.credentials.find) as looks:
            self.assertIsNone(await self.find())
            waiting = asyncio.create_task(self.find())
            for _ in range(20):
                await asyncio.sleep(0)
            self.assertEqual(looks.call_count, 2)
            self.relay.answer = Answer(200, {"credential": token()})
            self.relay.held.set()
            self.assertIsNotNone(await waiting)

    async def test_is_not_repeated_for_what_was_needed_before_it_began(self) -> None:
        needed_at = time.monotonic()
        for _ in range(3):
            self.assertIsNone(await self.find(needed_at))
        self.assertEqual(len(self.relay.asked), 1)


class OfASender(Looking):
    def verifier(self, is_pinned_only: bool, trust: Trust = Trust(issuers=[ACME])) -> SenderVerifier:
        manifest = RelayManifest("", self.relay, self.background)
        return SenderVerifier(trust, manifest, self.credentials, "relay.example", is_pinned_only)

    def envelope(self, sender: str) -> Envelope:
        members: dict[str, Any] = {"id": "e", "type": "message.send", "from": sender, "to": "agent://me"}
        read = read_envelope({**members, "payload": {}, "ts": NOW * 1000, "key_id": KEY_ID, "sig": "s"})
        assert read is not None
        return read

    async def test_asks_only_for_agents_of_pinned_issuers_where_nobody_else_counts(self) -> None:
        for is_pinned_only, asked in ((True, 1), (False, 2)):
            self.relay.asked.clear()
            self.credentials = SenderCredentials("", self.relay, self.background)
            verifier = self.verifier(is_pinned_only)
            for sender in ("agent://acme.bob", "agent://globex.eve"):
                verdict = await verifier.check(self.envelope(sender))
                self.assertEqual(verdict and verdict.verified, "unverified")
            self.assertEqual(len(self.relay.asked), asked)

    async def test_is_verified_however_many_strangers_came_before(self) -> None:
        def answer(url: str) -> Answer:
            if len(self.relay.asked) > RELAY_ANSWERS:
                return Answer(429, {"code": "rate_limited"})
            return Answer(200, {"credential": token()}) if "/acme.bob/" in url else Answer(404, {})

        self.relay.answer_to = answer
        verifier = self.verifier(False)
        for n in range(700):
            await verifier.check(self.envelope(f"agent://s{n}"))
        envelope = self.envelope("agent://acme.bob")
        own = signing_key({"alg": "ed25519", "private_key": D})
        envelope["sig"] = encode_base64url(own.sign(signed_part(envelope).encode()))
        verdict = await verifier.check(envelope)
        self.assertEqual(verdict and verdict.verified, "agent")

    async def test_whom_a_pinned_issuer_names_takes_nothing_from_strangers(self) -> None:
        self.credentials._strangers_allowance = Allowance(0)
        verifier = self.verifier(False)
        await verifier.check(self.envelope("agent://globex.eve"))
        self.assertEqual(self.relay.asked, [])
        await verifier.check(self.envelope("agent://acme.bob"))
        self.assertEqual(len(self.relay.asked), 1)

    async def test_that_a_pinned_issuer_may_have_as_one_of_all_others_has_to_be_verified(self) -> None:
        verifier = self.verifier(False, Trust(issuers=[{**ACME, "agents": ["*"]}]))
        self.assertTrue(verifier.is_pinned("agent://globex.eve"))
        self.assertFalse(self.verifier(False).is_pinned("agent://globex.eve"))

    async def test_passes_where_proof_is_wanted_by_a_key_or_an_issuer_that_is_pinned(self) -> None:
        verifier = self.verifier(False, Trust(gateways=["gateway-1"]))
        self.assertTrue(verifier.is_verified("agent", "k") and verifier.is_verified("gateway", "gateway-1"))
        others: list[Verified] = ["relay_issuer", "unverified", "gateway"]
        for verified in others:
            self.assertFalse(verifier.is_verified(verified, "gateway-2"), verified)


class OfGateways(Looking):
    async def test_knows_a_key_for_a_minute_at_most_since_the_relay_may_have_revoked_it(self) -> None:
        key_id = f"gateway-{encode_base64url(sha256(X.encode()).digest())[:22]}"
        self.relay.answer = Answer(200, {"gateway_keys": [{"key_id": key_id, "alg": "ed25519", "public_key": X}]})
        manifest = RelayManifest("", self.relay, self.background)
        self.assertIsNotNone(await manifest.gateway_key(key_id))
        self.relay.answer = Answer(503, {})
        manifest._read_at -= 60
        self.assertIsNotNone(await manifest.gateway_key(key_id))
        self.relay.answer = Answer(200, {"gateway_keys": []})
        manifest._read_at -= 59
        self.assertIsNotNone(await manifest.gateway_key(key_id))
        manifest._read_at -= 1
        self.assertIsNone(await manifest.gateway_key(key_id))


class ForPresence(Looking):
    async def asyncSetUp(self) -> None:
        await super().asyncSetUp()
        self.watch = PresenceWatch(CheckOnline("", self.relay), 200, self.background)
        self.says(False)

    async def test_that_something_else_than_a_relay_answers_may_pass_by_itself_where_it_says_so(self) -> None:
        answers = [
            *((Answer(status, {}), "unreachable") for status in (408, 425, 429, 500, 502, 503)),
            *((Answer(status, {}), "not_a_relay") for status in (200, 302, 403, 404, 407)),
            (Answer(404, {"code": "not_found", "retry": "fix"}), "not_a_relay"),
            (Answer(403, {"code": "unavailable"}), "not_a_relay"),
            (Answer(400, {"code": "invalid_envelope", "retry": "fix"}), "invalid_envelope"),
        ]
        for answer, code in answers:
            self.relay.answer = answer
            with self.assertRaises(RelayError) as raised:
                await CheckOnline("", self.relay).presence_of("agent://a")
            error = raised.exception
            self.assertEqual((error.code, error.retry), (code, "later" if code == "unreachable" else "fix"), answer)
            self.assertIn("" if code == "invalid_envelope" else f"{answer.status}", error.message)

    def says(self, is_online: bool) -> None:
        status = "online" if is_online else "offline"
        self.relay.answer = Answer(200, {"status": status, "can_deliver_realtime": is_online})

    async def refusal(self, agent: str, timeout_s: float) -> str:
        with self.assertRaises(RelayError) as raised:
            await self.watch.until_online(agent, timeout_s)
        return raised.exception.code

    async def refusal_in_the_end(self, agent: str) -> str:
        """The same, once the time is over. The relay has answered before."""
        waiting = asyncio.create_task(self.refusal(agent, 30))
        while not self.relay.asked:
            await asyncio.sleep(0.01)
        with later(30):
            return await waiting

    async def test_asks_once_for_all_who_wait_of_whom_there_are_so_many(self) -> None:
        waiting = [asyncio.create_task(self.watch.until_online("agent://a", 60)) for _ in range(200)]
        await asyncio.sleep(0)
        self.assertEqual(await self.refusal("agent://b", 60), "queue_full")
        while len(self.relay.asked) < 2:
            await asyncio.sleep(0.01)
        self.says(True)
        self.assertTrue(all(presence.can_deliver_realtime for presence in await asyncio.gather(*waiting)))
        self.assertLess(len(self.relay.asked), 6)

    async def test_for_many_leaves_look_ups_for_others(self) -> None:
        self.relay.held.clear()
        waiting = [asyncio.create_task(self.refusal(f"agent://a{n}", 60)) for n in range(50)]
        while len(self.relay.asked) < PRESENCE_LOOKS_AT_ONCE:
            await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        self.assertEqual(len(self.relay.asked), PRESENCE_LOOKS_AT_ONCE)
        self.watch.end(RelayError("closed"))
        self.assertEqual(set(await asyncio.gather(*waiting)), {"closed"})

    async def test_tells_who_is_away_from_a_relay_that_does_not_say(self) -> None:
        self.assertEqual(await self.refusal_in_the_end("agent://a"), "target_not_online")
        self.relay.answer = Answer(429, {"code": "rate_limited", "retry": "later", "retry_after_ms": 60_000})
        self.relay.asked.clear()
        self.assertEqual(await self.refusal_in_the_end("agent://a"), "timeout")
        self.assertEqual(len(self.relay.asked), 1)
        self.relay.answer = Answer(400, {"code": "invalid_envelope", "retry": "fix"})
        self.assertEqual(await self.refusal("agent://a", 60), "invalid_envelope")

    async def test_ends_with_its_last_waiter_and_with_the_connector(self) -> None:
        waiting = [asyncio.create_task(self.watch.until_online("agent://a", 60)) for _ in range(2)]
        await asyncio.sleep(0.01)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.sleep(0)
        self.assertEqual(self.background._tasks, set())
        again = asyncio.create_task(self.refusal("agent://a", 60))
        await asyncio.sleep(0.01)
        self.watch.end(RelayError("closed"))
        self.assertEqual([await again, await self.refusal("agent://a", 60)], ["closed", "closed"])

    async def test_asks_for_nobody_though_its_cancellation_was_lost(self) -> None:
        asked: list[str] = []

        async def answer(_: CheckOnline, agent: str) -> Presence:
            asked.append(agent)
            if len(asked) > 1:
                raise RelayError("invalid_envelope")
            with suppress(asyncio.CancelledError):
                await asyncio.Event().wait()
            return Presence(agent, "offline", False, {})

        with patch.object(CheckOnline, "presence_of", answer), patch.object(presence_watch, "growing_s", return_value=0):
            waiting = asyncio.create_task(self.watch.until_online("agent://a", 60))
            while not asked:
                await asyncio.sleep(0)
            waiting.cancel()
            while self.background._tasks and len(asked) == 1:
                await asyncio.sleep(0)
        self.assertEqual(asked, ["agent://a"])
