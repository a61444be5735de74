"""What comes in, whose it is, and what becomes of it where the relay ends the connection right after it."""

import asyncio
import json
import unittest
from collections.abc import Callable
from typing import Any
from unittest.mock import Mock, patch

from agent_relay_connector import Connector, Delivery, RelayError, Trust, delivered_ids
from agent_relay_connector.clock import Clock, machine_ms
from agent_relay_connector.connection import Connection
from agent_relay_connector.credentials import sender_credentials
from agent_relay_connector.given import TrustedKey
from agent_relay_connector.http import Answer, HttpClient
from agent_relay_connector.keys import signing_key
from agent_relay_connector.limits import DRAINING_CAP_S
from agent_relay_connector.signer import Signer
from agent_relay_connector.types import Envelope

from .kit import GENEROUS_S, KEY, SEED, ScriptedRelay, address_of, later, serve

ACCEPTED = {"accepted": True, "target_delivery": {"status": "online", "can_deliver_realtime": True}}
SUPERSEDED = {"frame": "notice", "notice": "superseded", "agent_id": "agent://b", "epoch": 2}


def delivered(n: int, **members: Any) -> dict[str, Any]:
    """A frame with an envelope of whose key only the relay can tell: it has to be asked for the sender's credential."""
    envelope = {"id": f"{n}", "type": "message.send", "from": "agent://a", "to": "agent://b", "payload": {"n": n}}
    key_id = "jkt-" + "a" * 43
    return {"frame": "deliver", "envelope": {**envelope, "ts": machine_ms(), "key_id": key_id, "sig": "s", **members}}


FRAMES = [delivered(n) for n in (1, 2, 3)]


# Of the agent that the tests pin.
BOB = Signer({"key_id": "b-1", "alg": "ed25519", "private_key": SEED}, Clock())
TRUSTED: TrustedKey = {"key_id": "b-1", "alg": "ed25519", "public_key": signing_key(KEY).public_key or ""}


def signed(**members: Any) -> dict[str, Any]:
    """A frame with an envelope of bob."""
    draft = BOB.draft({"from": "agent://b", "to": "agent://a", **members})
    envelope: Envelope = json.loads(BOB.sign(draft).text)
    return {"frame": "deliver", "envelope": envelope}


class OfAPinnedAgent(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.relay = ScriptedRelay()
        await self.relay.start()
        self.addAsyncCleanup(self.relay.stop)
        trust = Trust(keys={"agent://b": [TRUSTED]})
        self.connector = Connector(self.relay.url, agent="agent://a", key=KEY, take_over=True, trust=trust)
        self.addAsyncCleanup(self.connector.close)
        self.delivered: "asyncio.Queue[Delivery]" = asyncio.Queue()
        self.connector.on("delivery", self.delivered.put_nowait)
        await self.connector.start()

    async def test_a_reply_is_one_to_a_question_when_that_agent_signed_it_and_a_delivery_else(self) -> None:
        self.relay.answer = lambda _: {"frame": "ack", "target_delivery": ACCEPTED["target_delivery"]}
        asking = asyncio.create_task(self.connector.ask("agent://b", {}))
        await self.relay.until(lambda: bool(self.relay.of("message.send")))
        reply = {"id": "r", "type": "message.reply", "task_id": self.relay.of("message.send")[0]["task_id"]}
        true = signed(**reply, payload={"is": "true"})
        await self.relay.tell(**{**true, "envelope": {**true["envelope"], "id": "x", "key_id": "none"}})
        delivery = await asyncio.wait_for(self.delivered.get(), GENEROUS_S)
        self.assertEqual((delivery.verified, asking.done()), ("unverified", False))
        await self.relay.tell(**true)
        answer = await asyncio.wait_for(asking, GENEROUS_S)
        self.assertEqual((answer.payload, answer.verified), ({"is": "true"}, "agent"))

    async def test_a_message_is_remembered_however_many_senders_a_relay_makes_up(self) -> None:
        first, second = (signed(id=f"{n}", type="message.send", payload={"n": n}) for n in (1, 2))
        strangers = [delivered(n, **{"from": f"agent://x{n}", "to": "agent://a", "key_id": "none"}) for n in range(5)]
        with patch.object(delivered_ids, "MAX_SENDERS", 4):
            for frame in (first, *strangers, first, second):
                await self.relay.tell(**frame)
            given = [await asyncio.wait_for(self.delivered.get(), GENEROUS_S) for _ in range(7)]
        self.assertEqual([each.payload["n"] for each in given if each.verified == "agent"], [1, 2])
        self.assertEqual(self.connector.dropped, {})


class AnEnd(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        # What the relay says at once when it is told to end the connection, and the code of its close.
        self.last: asyncio.Future[tuple[list[dict[str, Any]], int]] = asyncio.get_running_loop().create_future()
        self.question: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.is_gone, self.is_asked, self.may_answer = asyncio.Event(), asyncio.Event(), asyncio.Event()
        server = await serve(self.relay, "127.0.0.1", 0)
        url = address_of(server, "http")
        self.connector = Connector(url, agent="agent://b", key=KEY, take_over=True)
        self.addAsyncCleanup(server.wait_closed)
        self.addCleanup(server.close)
        self.addAsyncCleanup(self.connector.close)
        # Look-ups have no answer, and are waited for, until a test lets them have one.
        for name in ("LOOK_UP_WAIT_S", "LOOK_UP_TIMEOUT_S"):
            waits = patch.object(sender_credentials, name, 60)
            waits.start()
            self.addCleanup(waits.stop)
        look_ups = patch.object(HttpClient, "get", self.look_up)
        look_ups.start()
        self.addCleanup(look_ups.stop)
        self.told: list[object] = []
        self.tells("delivery", lambda delivery: delivery.payload["n"])
        self.tells("notice", lambda notice: notice.kind)
        self.tells("state", lambda state: state.status)
        await self.connector.start()
        self.told.clear()

    async def relay(self, socket: Any, *_: str) -> None:
        await socket.send('{"frame":"hello"}')
        register = json.loads(await socket.recv())
        await socket.send(json.dumps({"frame": "ack", "envelope_id": register["id"], **ACCEPTED}))
        if self.last.done():
            return
        asked = asyncio.create_task(self.acknowledge(socket))
        frames, code = await self.last
        asked.cancel()
        for frame in frames:
            await socket.send(json.dumps(frame))
        await socket.close(code)
        self.is_gone.set()

    async def acknowledge(self, socket: Any) -> None:
        question = json.loads(await socket.recv())
        await socket.send(json.dumps({"frame": "ack", "envelope_id": question["id"], **ACCEPTED}))
        self.question.set_result(question)

    async def look_up(self, *_: object) -> Answer:
        self.is_asked.set()
        await self.may_answer.wait()
        return Answer(404, {})

    def tells(self, event: Any, what: Callable[[Any], object]) -> None:
        self.connector.on(event, lambda value: self.told.append(what(value)))

    async def read(self) -> tuple[list[Delivery], str | None]:
        """What the loop over deliveries gives, and the code of what it raises in the end."""
        given: list[Delivery] = []
        try:
            async for delivery in self.connector:
                given.append(delivery)
        except RelayError as error:
            return given, error.code
        return given, None

    async def ends(self, frames: list[dict[str, Any]], code: int) -> None:
        """Returns when the connection is gone, and what it brought waits for a look-up."""
        self.last.set_result((frames, code))
        await asyncio.wait_for(self.is_gone.wait(), GENEROUS_S)
        await asyncio.wait_for(self.is_asked.wait(), GENEROUS_S)

    async def test_by_another_connection_is_told_after_what_was_promised_has_been_judged_and_handed_over(self) -> None:
        reading = asyncio.create_task(self.read())
        await self.ends([*FRAMES, SUPERSEDED], 4409)
        self.assertEqual(self.told, [])
        self.may_answer.set()
        given, code = await asyncio.wait_for(reading, GENEROUS_S)
        self.assertEqual(([delivery.payload["n"] for delivery in given], code), ([1, 2, 3], "superseded"))
        self.assertEqual(self.told, [1, 2, 3, "superseded", "closed"])

    async def test_by_a_close_alone_is_told_after_what_came_before_it(self) -> None:
        reading = asyncio.create_task(self.read())
        await self.ends(FRAMES, 4403)
        self.may_answer.set()
        given, code = await asyncio.wait_for(reading, GENEROUS_S)
        self.assertEqual(([delivery.payload["n"] for delivery in given], code), ([1, 2, 3], "key_revoked"))
        self.assertEqual(self.told, [1, 2, 3, "closed"])

    async def test_behind_which_another_connection_follows_loses_nothing_that_came_before_it(self) -> None:
        handed_over = asyncio.Event()
        self.connector.on("delivery", lambda delivery: handed_over.set() if delivery.payload["n"] == 3 else None)
        with self.assertLogs("agent_relay_connector", "WARNING"):
            await self.ends(FRAMES, 1001)
            self.may_answer.set()
            await asyncio.wait_for(handed_over.wait(), GENEROUS_S)
        self.assertEqual([told for told in self.told if isinstance(told, int)], [1, 2, 3])

    async def test_for_good_has_no_connection_follow_while_look_ups_have_no_answer(self) -> None:
        reading = asyncio.create_task(self.read())
        draining = {"frame": "notice", "notice": "draining", "reconnect_after_ms": DRAINING_CAP_S * 1000}
        life = self.connector._life
        with patch.object(life, "ended", Mock(wraps=life.ended)) as ended, patch.object(Connection, "open") as opened:
            await self.ends([draining, *FRAMES], 4403)
            while not ended.called:
                await asyncio.sleep(0.01)
            # The wait that the relay asked for is over.
            with later(DRAINING_CAP_S * 1.5):
                for _ in range(3):
                    await asyncio.sleep(0)
            opened.assert_not_called()
        self.may_answer.set()
        given, code = await asyncio.wait_for(reading, GENEROUS_S)
        self.assertEqual((len(given), code), (3, "key_revoked"))

    async def test_for_good_lets_nothing_go_out_that_is_sent_while_it_is_not_told_yet(self) -> None:
        await self.ends([*FRAMES, SUPERSEDED], 4409)
        sending = asyncio.create_task(self.connector.send("agent://a", {}))
        self.may_answer.set()
        with self.assertRaises(RelayError) as refused:
            await asyncio.wait_for(sending, GENEROUS_S)
        self.assertEqual((refused.exception.code, refused.exception.outcome), ("superseded", "refused"))

    async def test_finds_the_reply_that_came_before_it(self) -> None:
        asking = asyncio.create_task(self.connector.ask("agent://a", {}))
        question = await asyncio.wait_for(self.question, GENEROUS_S)
        reply = delivered(4, type="message.reply", task_id=question["task_id"])
        await self.ends([reply, SUPERSEDED], 4409)
        self.may_answer.set()
        self.assertEqual((await asyncio.wait_for(asking, GENEROUS_S)).payload, {"n": 4})

    async def test_that_the_agent_itself_brings_about_meanwhile_waits_for_nothing(self) -> None:
        reading = asyncio.create_task(self.read())
        await self.ends([*FRAMES, SUPERSEDED], 4409)
        await self.connector.close()
        self.assertEqual(await asyncio.wait_for(reading, GENEROUS_S), ([], None))
        self.assertEqual(self.told, ["closed"])
