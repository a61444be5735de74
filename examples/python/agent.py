#!/usr/bin/env python3
"""A whole agent in one file: it registers, stays online, and replies to every message that it is sent.

    apt-get install -y python3-websockets python3-cryptography
    python3 agent.py --key bob.json --url http://127.0.0.1:8080

Python 3.11 or later; nothing here is the relay's own code. The key file is a JSON object: agent_id, key_id, alg
(ed25519 or hmac-sha256), in base64url private_key (the 32-byte seed) or secret, and credential where an issuer
vouches for the key. Make it yours: `answer`.
"""

import argparse
import asyncio
import base64
import hmac
import json
import os
import random
import sys
import time
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any
from urllib.parse import urlsplit

try:
    import websockets
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from websockets.exceptions import ConnectionClosed, WebSocketException
except ImportError as missing:
    sys.exit(
        f"{missing.name} is not installed for {sys.executable}. On Debian: apt-get install -y python3-websockets "
        "python3-cryptography, then run this with /usr/bin/python3; elsewhere: pip install websockets cryptography"
    )

Json = dict[str, Any]
say = partial(print, flush=True)
SIGNING_ORDER = ("id", "type", "from", "to", "task_id", "payload", "ts", "key_id")
# What it sent (1003 to 1009), key revoked, agent registered elsewhere: do not reconnect.
FINAL_CLOSES = (1003, 1007, 1008, 1009, 4403, 4409)


async def answer(envelope: Json) -> Json | None:
    """REPLACE THIS: the payload of the reply to a message.send, or None for no reply. Here an echo.

    It may take its time: heartbeats and other messages go on meanwhile. The relay has verified that envelope["from"]
    signed the envelope; whoever has that agent's public key can verify it again.
    """
    return dict(envelope["payload"])


def jcs(value: Any) -> str:
    """RFC 8785: no white space, members sorted by UTF-16 code units, numbers as ECMAScript writes them."""
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(f"{jcs(name)}:{jcs(value[name])}" for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(jcs, value)) + "]"
    if value is None or isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int) and abs(value) >= 2**53:
        raise ValueError("readers of JSON would round an integer of 2**53 or more: send it as a string")
    if value == 0:
        return "0"
    shortest = Decimal(json.dumps(float(value), allow_nan=False)).normalize()
    return f"{shortest:f}" if 1e-6 <= abs(value) < 1e21 else f"{shortest:e}"


def signer(key: Json) -> Callable[[bytes], bytes]:
    """What signs with the key of a key file. Raises KeyError or ValueError, without any text of the key."""
    if key["alg"] == "ed25519":
        return Ed25519PrivateKey.from_private_bytes(base64.urlsafe_b64decode(key["private_key"] + "==")).sign
    if key["alg"] == "hmac-sha256":
        secret = base64.urlsafe_b64decode(key["secret"] + "==")
        return lambda text: hmac.digest(secret, text, "sha256")
    raise ValueError("alg is ed25519 or hmac-sha256")


class Agent:
    """One connection at a time, replaced when it ends. A reply that is being sent at that moment may be lost."""

    def __init__(self, url: str, key: Json, approve_sessions: bool) -> None:
        self.url, self.key, self.sign, self.approve_sessions = url, key, signer(key), approve_sessions
        self.online = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()  # replies in progress; the event loop holds only weak references
        self.backoff_s = 1.0

    async def run(self) -> None:
        """Stays online. Exits with a message when the relay refuses this agent."""
        while True:
            self.told_to_wait_s = 0.0
            try:
                async with websockets.connect(self.url) as self.socket:
                    await self.converse()
            except ConnectionClosed as closed:
                reason = f"{closed.rcvd.code} {closed.rcvd.reason}" if closed.rcvd else "connection lost"
                if closed.rcvd and closed.rcvd.code in FINAL_CLOSES:
                    sys.exit(f"The relay closed the connection for good: {reason}.")
            except (OSError, asyncio.TimeoutError, WebSocketException) as error:
                reason = str(error) or "no answer in time"
            # Full jitter: agents that were disconnected together must not reconnect together.
            wait_s = self.told_to_wait_s or random.uniform(0, self.backoff_s)
            self.backoff_s = min(30, self.backoff_s * 2)
            say(f"offline ({reason}), trying again in {wait_s:.1f} s")
            await asyncio.sleep(wait_s)

    async def converse(self) -> None:
        """One connection, from hello until an exception ends it."""
        hello = json.loads(await asyncio.wait_for(self.socket.recv(), 10))
        self.limits, self.skew_ms = hello["limits"], hello["server_time"] - time.time() * 1000
        heartbeat = asyncio.create_task(self.beat())
        try:
            await self.socket.send(self.envelope("agent.register", payload=self.presented()))
            while True:
                self.take(json.loads(await self.socket.recv(), parse_int=integer))
        finally:
            heartbeat.cancel()
            self.online.clear()

    def presented(self) -> Json:
        """What a key that the relay does not list is registered with: a credential, and the relay it is shown to."""
        if "credential" not in self.key:
            return {}
        return {"credential": self.key["credential"], "relay": urlsplit(self.url).netloc}

    def take(self, frame: Json) -> None:
        match frame:
            case {"frame": "ack", "type": "agent.register"}:
                self.backoff_s = 1.0
                self.online.set()
                say(f"{self.key['agent_id']} is {frame['presence']['status']}")
            case {"frame": "error", "code": code}:
                what = f"{code}: {frame['message']} {frame['hint']}"
                if self.online.is_set():
                    say(what)
                elif frame.get("retry") == "later" or code in ("unavailable", "rate_limited"):
                    raise ConnectionError(what)
                else:
                    sys.exit(f"The relay refused to register the agent. {what}")
            case {"frame": "deliver", "envelope": envelope}:
                task = asyncio.create_task(self.receive(envelope, frame.get("session_id")))
                self.tasks.add(task)
                task.add_done_callback(self.tasks.discard)
            case {"frame": "notice", "notice": notice}:
                say(f"notice: {notice}")
                self.told_to_wait_s = frame.get("reconnect_after_ms", 0) / 1000

    async def receive(self, envelope: Json, session_id: str | None) -> None:
        """Replies to message.send only, and with another type: two agents like this one do not go on forever."""
        sender, kind = envelope["from"], envelope["type"]
        say(f"{kind} from {sender}")
        if kind == "message.send" and (payload := await answer(envelope)) is not None:
            about = envelope.get("task_id", envelope["id"])
            await self.send("message.reply", to=sender, task_id=about, payload=payload)
        if kind == "session.request" and self.approve_sessions:
            await self.send("session.approve", to=sender, payload={"session_id": session_id})

    async def beat(self) -> None:
        while True:
            await asyncio.sleep(self.limits["heartbeat_interval_ms"] / 1000)
            await self.send("agent.heartbeat")

    async def send(self, kind: str, **fields: Any) -> None:
        """Signs and sends as soon as the agent is online."""
        await self.online.wait()
        text = self.envelope(kind, **fields)
        if len(text.encode()) > self.limits["max_frame_bytes"]:
            say(f"{kind} is too long for the relay: not sent")
            return
        try:
            await self.socket.send(text)
        except ConnectionClosed:
            say(f"{kind} was lost with the connection")

    def envelope(self, kind: str, **fields: Any) -> str:
        """What is signed, with `sig` as its last member. Raises ValueError for a payload that has no canonical text."""
        values = {"id": str(uuid.uuid4()), "type": kind, "from": self.key["agent_id"], "payload": {}, **fields}
        values |= {"ts": int(time.time() * 1000 + self.skew_ms), "key_id": self.key["key_id"]}
        members = ",".join(f'"{name}":{jcs(values[name])}' for name in SIGNING_ORDER if name in values)
        sig = base64.urlsafe_b64encode(self.sign(f"{{{members}}}".encode())).decode().rstrip("=")
        return f'{{{members},"sig":"{sig}"}}'


def integer(text: str) -> int | float:
    """An integer in JSON text; a long one is a double, as it is for every other reader."""
    return int(text) if len(text) < 16 else float(text)


def main() -> None:
    parser = argparse.ArgumentParser(description="An agent that replies to every message.")
    parser.add_argument("--key", default=os.environ.get("RELAY_KEY_FILE"), help="key file; else RELAY_KEY_FILE")
    parser.add_argument("--url", default=os.environ.get("RELAY_URL", "http://127.0.0.1:8080"), help="else RELAY_URL")
    parser.add_argument("--approve-sessions", action="store_true", help="approve every session that is requested")
    options = parser.parse_args()
    if options.key is None or not options.url.startswith("http"):
        parser.error("--key names a key file, --url an address that begins with http:// or https://")
    try:
        with open(options.key, encoding="utf-8") as file:
            url = "ws" + options.url.removeprefix("http").rstrip("/") + "/ws"
            agent = Agent(url, json.load(file), options.approve_sessions)
    except (OSError, KeyError, TypeError, ValueError) as error:
        sys.exit(f"The key file cannot be used: {error}")
    try:
        asyncio.run(agent.run())
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
