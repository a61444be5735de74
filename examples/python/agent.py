#!/usr/bin/env python3
"""An agent that replies to every message and approves every session: agent.py bob.json [http://127.0.0.1:8080]"""

import asyncio
import os
import sys

try:
    from agent_relay_connector import Connector, Delivery, RelayError
except ImportError as missing:
    debian = "On Debian, python3-websockets and python3-cryptography are for /usr/bin/python3 alone."
    sys.exit(f"{missing.name} is missing for {sys.executable}: install it there with pip. {debian}")


async def answer(agent: Connector, delivery: Delivery) -> None:
    """REPLACE THIS. A message.send only: two agents that reply to replies would go on for ever."""
    if delivery.type == "message.send":
        await delivery.reply(dict(delivery.payload))
    if delivery.type == "session.request" and delivery.session_id:
        await agent.approve(delivery.session_id, delivery.sender)


async def main(key_file: str, url: str = os.environ.get("RELAY_URL") or "http://127.0.0.1:8080") -> None:
    async with Connector(url, key_file=key_file) as agent:
        print(f"{agent.agent} is online", flush=True)
        async for delivery in agent:
            try:
                await answer(agent, delivery)
            except RelayError as error:
                print(error, flush=True)


try:
    asyncio.run(main(*sys.argv[1:]))
except RelayError as error:
    sys.exit(str(error))
except KeyboardInterrupt:
    pass
