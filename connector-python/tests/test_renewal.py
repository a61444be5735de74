"""The agent's own credentials and their keys, as they are replaced."""

import asyncio
import json
import tempfile
import time
import unittest
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

from agent_relay_connector import Connector, CredentialWithKeys, Delivery, RelayError, spacing
from agent_relay_connector.background import Background
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.clock import Clock, machine_ms
from agent_relay_connector.credentials import answer_of
from agent_relay_connector.credentials.own_credential import OwnCredential, OwnCredentialOptions
from agent_relay_connector.credentials.public_jwk import thumbprint_of
from agent_relay_connector.given import AgentKey
from agent_relay_connector.http import Answer, HttpClient
from agent_relay_connector.keys import signing_key
from agent_relay_connector.read_envelope import read_envelope
from agent_relay_connector.sealing.hpke import raw_public
from agent_relay_connector.sealing.own_sealing_keys import OwnSealingKeys
from agent_relay_connector.sealing.sealed_payload import plaintext_of, seal_payload
from agent_relay_connector.sealing.sealing_keys import SealingKeys
from agent_relay_connector.signer import Signer

from .issued import ACME, THUMBPRINT, D, credential, token, valid
from .kit import GENEROUS_S, ScriptedRelay

FIRST_KEY = f"jkt-{THUMBPRINT}"
X25519, OTHER_X25519 = (encode_base64url(bytes([number] * 32)) for number in (3, 4))
Given = str | CredentialWithKeys


def lasting(seconds: int, **changes: object) -> str:
    now = int(time.time())
    return token(valid(iat=now, exp=now + seconds, **changes))


def another(number: int, seconds: int = 3600) -> tuple[str, CredentialWithKeys]:
    """The id of a new key, and a credential that comes with it."""
    key: AgentKey = {"alg": "ed25519", "private_key": encode_base64url(bytes([number] * 32))}
    public = signing_key(key).public_key or ""
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": public}
    given = CredentialWithKeys(lasting(seconds, cnf={"jwk": jwk}), key)
    return f"jkt-{thumbprint_of(public, 'Ed25519')}", given


class AnOwnCredential(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.needed = [FIRST_KEY]
        self.failed: list[str] = []
        self.clock = Clock()
        self.background = Background()

    async def started(self, first: Given) -> OwnCredential:
        self.answer: Callable[[], Awaitable[Given]] = lambda: _soon(first)
        own = OwnCredential(
            OwnCredentialOptions(
                source=lambda: self.answer(),
                agent="agent://acme.bob",
                clock=self.clock,
                signer=Signer({"alg": "ed25519", "private_key": D}, self.clock),
                sealing_keys=OwnSealingKeys(self.clock, ()),
                needs=lambda key_id: key_id in self.needed,
                renewed=lambda: None,
                failed=lambda error: self.failed.append(error.code),
                background=self.background,
            )
        )
        self.addCleanup(own.stop)
        await own.start()
        return own

    def key_ids(self, own: OwnCredential) -> list[str]:
        return [each.signer.key_id for each in own.registrations()]

    async def renews(self, own: OwnCredential, given: Given) -> bool | None:
        self.answer = lambda: _soon(given)
        return await own.renew()

    async def test_is_registered_after_the_key_before_only_while_that_has_envelopes_without_an_answer(self) -> None:
        own = await self.started(lasting(3600))
        second, given = another(1)
        self.assertIs(await self.renews(own, given), True)
        self.assertEqual(self.key_ids(own), [FIRST_KEY, second])
        held = [own.held_at(machine_ms(), key_id) for key_id in (FIRST_KEY, second, "jkt-other")]
        self.assertEqual([each and each.key_id for each in held], [FIRST_KEY, second, None])
        self.needed.clear()
        self.assertEqual(self.key_ids(own), [second])

    async def test_of_a_third_key_waits_for_the_first_and_not_beyond_its_end(self) -> None:
        own = await self.started(lasting(100))
        await self.renews(own, another(1)[1])
        third, given = another(2)
        self.assertIsNone(await self.renews(own, given))
        self.assertEqual(self.key_ids(own)[0], FIRST_KEY)
        self.clock.measure(machine_ms() + 101_000)
        self.assertIs(await self.renews(own, given), True)
        self.assertEqual((self.key_ids(own), self.failed), ([third], []))

    async def test_that_cannot_be_used_changes_nothing_and_says_so(self) -> None:
        own = await self.started(lasting(3600))
        refused: list[Given] = [
            "x",
            lasting(60, sub="agent://acme.eve"),
            CredentialWithKeys(lasting(60), another(1)[1].key),
            another(1)[1].credential,
        ]
        for given in refused:
            self.assertIsNone(await self.renews(own, given))
        self.assertEqual(self.failed, ["invalid_credential"] * 4)
        self.assertIs(await self.renews(own, own.registrations()[0].credential.token), False)  # type: ignore[union-attr]
        self.assertEqual(self.key_ids(own), [FIRST_KEY])

    async def test_is_another_one_until_a_register_has_presented_it(self) -> None:
        own = await self.started(lasting(100))
        own.presented(own.registrations()[0])
        self.assertIs(await own.has_another(), False)
        await self.renews(own, lasting(200))
        self.assertIs(await own.has_another(), True)

    async def test_is_not_waited_for_when_its_callback_hangs_even_where_that_cannot_be_cancelled(self) -> None:
        own = await self.started(lasting(3600))
        released = asyncio.Event()
        self.addCleanup(released.set)

        async def hangs() -> str:
            while not released.is_set():
                try:
                    await released.wait()
                except asyncio.CancelledError:
                    pass
            return ""

        self.answer = hangs
        with patch.object(answer_of, "RENEWAL_ANSWER_WITHIN_S", 0.01):
            self.assertIsNone(await asyncio.wait_for(own.renew(), GENEROUS_S))
        self.assertEqual(self.failed, ["timeout"])
        self.assertIs(await self.renews(own, lasting(7200)), True)

    async def test_fails_with_what_its_callback_raised_whatever_it_is(self) -> None:
        for cause in (asyncio.TimeoutError(), asyncio.CancelledError()):

            async def fails(cause: BaseException = cause) -> str:
                raise cause

            own = await self.started(lasting(3600))
            self.answer = fails
            with self.assertRaises(RelayError) as raised:
                await own.start()
            self.assertEqual(raised.exception.code, "invalid_credential")
            self.assertIs(raised.exception.__cause__, cause)

    async def renews_nothing(self, own: OwnCredential) -> None:
        """What it would be given is refused, and that is told."""
        self.answer = lambda: _soon("x")
        await own._look()
        self.assertEqual(self.failed, [])

    async def test_is_not_due_by_what_a_relay_says_the_time_is(self) -> None:
        self.clock.measure(machine_ms() + 365 * 86_400_000)
        own = await self.started(lasting(86_400))
        await self.renews_nothing(own)
        assert own._timer is not None
        self.assertGreater(own._timer.when() - asyncio.get_running_loop().time(), 60)

    async def test_is_asked_for_ever_less_often_though_each_is_another_one(self) -> None:
        own = await self.started(lasting(86_400))
        own._due_at = 0
        self.answer = lambda: _soon(lasting(86_401))
        # No time passes.
        with patch.object(spacing, "time", Mock(monotonic=lambda: 1000.0)):
            await own._look()
            own.presented(own.registrations()[0])
            own._due_at = 0
            await self.renews_nothing(own)
            self.assertIsNone(await own.has_another())
        self.assertEqual(self.failed, [])


class AtARelay(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.relay = ScriptedRelay()
        await self.relay.start()
        self.addAsyncCleanup(self.relay.stop)
        self.states: "asyncio.Queue[str]" = asyncio.Queue()

    async def started(self, **options: Any) -> Connector:
        connector = Connector(self.relay.url, take_over=True, **options)
        self.addAsyncCleanup(connector.close)
        connector.on("state", lambda state: self.states.put_nowait(state.status))
        await asyncio.wait_for(connector.start(), GENEROUS_S)
        return connector

    async def becomes(self, status: str) -> None:
        while await asyncio.wait_for(self.states.get(), GENEROUS_S) != status:
            pass

    def key_file(self, credential: str, private_key: str, sealing_key: str) -> str:
        """Replaced whole: nobody reads half of it."""
        path = Path(self.folder, "key.json")
        record = {"agent_id": "agent://acme.bob", "alg": "ed25519", "private_key": private_key, "credential": credential}
        path.with_suffix(".new").write_text(json.dumps({**record, "sealing_key": sealing_key, "trusted_issuers": [ACME]}))
        path.with_suffix(".new").rename(path)
        return str(path)

    async def test_takes_over_the_keys_of_a_file_and_what_has_no_answer_goes_out_again_as_it_was(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        now = int(time.time())
        # Its renewal is due: the file is read again and again until it has another.
        due = token(valid(iat=now - 6000, exp=now + 600))
        connector = await self.started(key_file=self.key_file(due, D, X25519))
        self.relay.answer = lambda envelope: None if envelope["type"] == "message.send" else {"frame": "ack"}
        first = asyncio.create_task(connector.send("agent://b", {"n": 0}))
        await self.relay.until(lambda: bool(self.relay.of("message.send")))
        second_key, given = another(1)
        assert given.key is not None
        self.key_file(given.credential, given.key["private_key"], OTHER_X25519)
        await self.relay.until(lambda: len(self.relay.of("agent.register")) == 2)
        self.assertEqual(len(self.relay.connections), 1)

        received = len(self.relay.received)
        self.relay.answer = lambda _: {"frame": "ack"}
        await self.becomes("online")
        with self.assertLogs("agent_relay_connector", "WARNING"):
            self.relay.cut()
            await self.becomes("reconnecting")
        second = asyncio.create_task(connector.send("agent://b", {"n": 1}))
        await asyncio.wait_for(asyncio.gather(first, second), GENEROUS_S)
        after = self.relay.received[received:]
        keys = [(envelope["type"], envelope["key_id"]) for envelope in after]
        registers = [("agent.register", FIRST_KEY), ("agent.register", second_key)]
        self.assertEqual(keys, [*registers, ("message.send", FIRST_KEY), ("message.send", second_key)])
        self.assertEqual(after[2], self.relay.of("message.send")[0])
        await self.opens(connector)

    async def opens(self, connector: Connector) -> None:
        """What another agent of the pinned issuer seals to the sealing key of the second file."""
        sender = Signer({"alg": "ed25519", "private_key": D}, Clock())
        eve = credential(sub="agent://acme.eve", iat=int(time.time()) - 1, exp=int(time.time()) + 3600)
        sender.take_id_of(eve)
        members: dict[str, Any] = {"id": "m", "type": "message.send", "from": eve.agent, "to": connector.agent}
        draft = read_envelope({**members, "payload": {}, "ts": 1, "key_id": "k", "sig": "s"})
        assert draft is not None
        public = encode_base64url(raw_public(next(iter(SealingKeys([OTHER_X25519]).values())).private))
        sealed = sender.draft({**members, "payload": seal_payload(plaintext_of({"n": 2}), draft, public)})
        delivered: "asyncio.Queue[Delivery]" = asyncio.Queue()
        connector.on("delivery", delivered.put_nowait)
        with patch.object(HttpClient, "get", return_value=Answer(200, {"credential": eve.token})):
            await self.relay.tell(frame="deliver", envelope=json.loads(sender.sign(sealed).text))
            delivery = await asyncio.wait_for(delivered.get(), GENEROUS_S)
        self.assertEqual((delivery.payload, delivery.sealed, delivery.verified), ({"n": 2}, True, "agent"))

    async def test_is_back_after_a_revocation_with_another_credential_and_ends_without_one(self) -> None:
        tokens = [lasting(3600), lasting(7200)]
        given = iter([*tokens, tokens[1]])
        key: AgentKey = {"alg": "ed25519", "private_key": D}
        await self.started(agent="agent://acme.bob", key=key, credential=lambda: _soon(next(given)))
        with self.assertLogs("agent_relay_connector", "WARNING"):
            for _ in range(2):
                await self.becomes("online")
                await self.relay.tell(frame="notice", notice="released", reason="revoked")
                await self.relay.connections[-1].close(4403)
            await self.becomes("closed")
        presented = [register["payload"]["credential"] for register in self.relay.of("agent.register")]
        self.assertEqual(presented, tokens)


async def _soon(answer: Given) -> Given:
    return answer
