"""Agents on the connector for Python, by the protocol of `crowd.ts`. They tell what happens, and keep nothing."""

import asyncio
import gc
import itertools
import json
import logging
import random
import signal
import sys
import time
from typing import Any

from agent_relay_connector import Connector, RelayError

sends: set["asyncio.Task[None]"] = set()


def tell(**members: Any) -> None:
    print(json.dumps(members), flush=True)


def tell_what_is_held() -> None:
    gc.collect()
    tell(msg="held")


def now_ms() -> float:
    return time.monotonic() * 1000


def connector_of(orders: dict[str, Any]) -> Connector:
    agent = orders["agent"]
    connector = Connector(orders["url"], agent=agent, key=orders["key"], take_over=True)

    def tell_state(state: Any) -> None:
        if state.status == "online":
            tell(told="online", agent=agent, at=now_ms())

    def tell_delivery(delivery: Any) -> None:
        tell(told="delivered", id=delivery.payload["message"], agent=agent, at=now_ms())

    connector.on("state", tell_state)
    connector.on("delivery", tell_delivery)
    connector.on("error", lambda error: tell(told="problem", code=error.code))
    return connector


async def talk(connector: Connector, partners: list[str], orders: dict[str, Any]) -> None:
    every_s = orders["send_every_ms"] / 1000
    await asyncio.sleep(random.random() * every_s)
    for number, to in zip(itertools.count(orders["first_number"]), itertools.cycle(partners)):
        task = asyncio.create_task(send(connector, to, number, orders["send_timeout_ms"] / 1000))
        sends.add(task)
        task.add_done_callback(sends.discard)
        await asyncio.sleep(every_s)


async def send(connector: Connector, to: str, number: int, timeout_s: float) -> None:
    message = f"{connector.agent} {to} {number}"
    tell(told="sent", id=message, at=now_ms())
    try:
        accepted = await connector.send(to, {"message": message}, timeout=timeout_s)
    except RelayError as error:
        tell(told="failed", id=message, at=now_ms(), code=error.code, outcome=error.outcome)
    else:
        realtime = accepted.delivery.can_deliver_realtime
        tell(told="accepted", id=message, at=now_ms(), duplicate=accepted.duplicate, realtime=realtime)


async def main() -> None:
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGUSR2, tell_what_is_held)
    lines = asyncio.StreamReader(limit=2**20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    orders = json.loads(await lines.readline())
    connectors = [connector_of(agent) for agent in orders["agents"]]
    await asyncio.gather(*(connector.start() for connector in connectors))
    partners = [agent["partners"] for agent in orders["agents"]]
    talks = [asyncio.create_task(talk(*pair, orders)) for pair in zip(connectors, partners)]
    await lines.readline()
    for task in talks:
        task.cancel()
    await lines.readline()
    await asyncio.gather(*(connector.close() for connector in connectors))


logging.getLogger("agent_relay_connector").setLevel(logging.ERROR)
asyncio.run(main())
