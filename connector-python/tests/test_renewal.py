"""The agent's own credentials and sealing keys, as they are replaced."""

import asyncio
import time
import unittest
from collections.abc import Awaitable, Callable
from unittest.mock import Mock, patch

from agent_relay_connector import CredentialWithKeys, RelayError, SealingKey, spacing
from agent_relay_connector.background import Background
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.clock import Clock, machine_ms
from agent_relay_connector.credentials import answer_of
from agent_relay_connector.credentials.own_credential import OwnCredential, OwnCredentialOptions
from agent_relay_connector.credentials.public_jwk import thumbprint_of
from agent_relay_connector.given import AgentKey
from agent_relay_connector.keys import signing_key
from agent_relay_connector.limits import SEALING_KEY_KEPT_MS
from agent_relay_connector.sealing.hpke import raw_public
from agent_relay_connector.sealing.own_sealing_keys import OwnSealingKeys
from agent_relay_connector.sealing.sealing_keys import SealingKeys
from agent_relay_connector.signer import Signer
from agent_relay_connector.spacing import Spacing

from .issued import NOW, THUMBPRINT, D, credential, token, valid

FIRST_KEY = f"jkt-{THUMBPRINT}"
Answer = str | CredentialWithKeys


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

    async def started(self, first: Answer) -> OwnCredential:
        self.answer: Callable[[], Awaitable[Answer]] = lambda: _soon(first)
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

    async def renews(self, own: OwnCredential, given: Answer) -> bool | None:
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
        refused: list[Answer] = [
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
            self.assertIsNone(await asyncio.wait_for(own.renew(), 20))
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


class ASpacing(unittest.TestCase):
    def test_grows_up_to_its_cap_and_starts_again_after_a_long_time(self) -> None:
        spacing, distances = Spacing(60), []
        with patch("time.monotonic") as now:
            now.return_value = 1000.0
            self.assertEqual(spacing.left_s(), 0)
            for _ in range(9):
                spacing.happens()
                distances.append(spacing.left_s())
                now.return_value += distances[-1]
            self.assertEqual(distances, [0.5, 1, 2, 4, 8, 16, 32, 60, 60])
            self.assertEqual(spacing.left_s(), 0)
            spacing.happens()
            self.assertEqual(spacing.left_s(at_most_s=1), 1)
            now.return_value += 120
            spacing.happens()
            self.assertEqual(spacing.left_s(), 0.5)


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


async def _soon(answer: Answer) -> Answer:
    return answer
