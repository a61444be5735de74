"""One connection, at a relay that greets it."""

import asyncio
import json
import unittest
from typing import Any
from unittest.mock import Mock, patch

import websockets

from agent_relay_connector import connection
from agent_relay_connector.base64url import encode_base64url
from agent_relay_connector.clock import Clock
from agent_relay_connector.connection import Connection, ConnectionEnd, ConnectionOptions
from agent_relay_connector.given import AgentKey
from agent_relay_connector.limits import REGISTER_WITHIN_S
from agent_relay_connector.presence import Presence, PresenceOptions, Registration
from agent_relay_connector.signer import Signer

from .times import GENEROUS_S, later


# Exported in a way that type checkers do not see.
serve: Any = getattr(websockets, "serve")
# Source: docs/protocol.md#limits.
RELAY_WAITS_S = 10
KEY: AgentKey = {"key_id": "a-1", "alg": "ed25519", "private_key": encode_base64url(bytes(range(32)))}


class AFirstRegister(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.received: list[str] = []
        self.was_received, self.may_answer = asyncio.Event(), asyncio.Event()
        self.registered = asyncio.Event()
        server = await serve(self.greet, "127.0.0.1", 0)
        self.url = f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"
        self.ended: asyncio.Future[ConnectionEnd] = asyncio.get_running_loop().create_future()
        # Until it is set the register may not go out.
        self.may_register = asyncio.Event()
        self.connection = self.connect()
        self.addAsyncCleanup(server.wait_closed)
        self.addCleanup(server.close)
        self.addAsyncCleanup(self.connection.close)

    async def greet(self, socket: Any, *_: str) -> None:
        await socket.send('{"frame":"hello"}')
        async for text in socket:
            envelope = json.loads(text)
            self.received.append(envelope["type"])
            self.was_received.set()
            await self.may_answer.wait()
            await socket.send('{"frame":"notice","notice":"draining"}')
            ack = {"frame": "ack", "envelope_id": envelope["id"], "type": envelope["type"], "accepted": True}
            await socket.send(json.dumps(ack))

    def connect(self) -> Connection:
        async def before_register(_: object) -> None:
            await self.may_register.wait()

        clock = Clock()
        registration = Registration(Signer(KEY, clock), None)
        options = PresenceOptions("agent://a", "relay", None, clock, before_register, lambda: [registration], Mock())
        events = Mock(
            registered=lambda _: self.registered.set(),
            connection_ended=lambda _, end: self.ended.set_result(end),
        )
        return Connection(ConnectionOptions(self.url, {}, clock, Presence(options)), events)

    async def test_that_does_not_go_out_in_time_ends_the_connection_before_the_relay_does_for_good(self) -> None:
        self.assertLess(REGISTER_WITHIN_S, RELAY_WAITS_S)
        with patch.object(connection, "REGISTER_WITHIN_S", 0.05):
            self.connection.open()
            end = await asyncio.wait_for(self.ended, GENEROUS_S)
        # Without an error: another attempt follows.
        self.assertEqual((end.reason, end.error, self.received), ("lost", None, []))

    async def test_that_went_out_in_time_may_be_answered_later(self) -> None:
        self.may_register.set()
        self.connection.open()
        await self.was_received.wait()
        with later(REGISTER_WITHIN_S):
            self.may_answer.set()
            await asyncio.wait_for(self.registered.wait(), GENEROUS_S)
        self.assertEqual((self.ended.done(), self.received), (False, ["agent.register"]))

    async def test_that_cannot_be_signed_ends_the_connection_for_good_and_says_why(self) -> None:
        fault = LookupError("a fault")
        with patch.object(Presence, "sign", side_effect=fault):
            self.connection.open()
            end = await asyncio.wait_for(self.ended, GENEROUS_S)
        assert end.error is not None
        self.assertEqual((end.error.code, end.error.__cause__), ("invalid_key", fault))

    async def test_and_an_envelope_that_were_answered_are_told_from_other_frames_that_come_in(self) -> None:
        self.may_register.set()
        self.may_answer.set()
        with patch.object(connection, "Keepalive") as keepalive:
            self.connection.open()
            await asyncio.wait_for(self.registered.wait(), GENEROUS_S)
            answered = asyncio.Event()
            keepalive.return_value.answered.side_effect = answered.set
            self.connection.send('{"id": "x", "type": "message.send"}')
            await asyncio.wait_for(answered.wait(), GENEROUS_S)
        told = [name for name, _, _ in keepalive.return_value.method_calls if name not in ("start", "request_sent")]
        frames = ["frame_received", "frame_received", "answered"]
        self.assertEqual(told, ["heartbeat_sent", *frames, *frames])
