"""The connector for Python behind the protocol of `driver-process.ts`. Translates names, decides nothing.

A busy machine may answer later than the product waits. So some limits differ from the product's. A look-up may take
60 s. A delivery waits for it as long. A start presents a key that the relay does not know until it ends.
"""

import asyncio
import dataclasses
import json
import logging
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from agent_relay_connector import (
    Accepted,
    Connector,
    Delivery,
    Presence,
    RelayError,
    Trust,
    first_start,
    relay_manifest,
    verify_receipt,
)
from agent_relay_connector.credentials import sender_credentials

for module in (relay_manifest, sender_credentials):
    for time in ("LOOK_UP_WAIT_S", "LOOK_UP_TIMEOUT_S"):
        setattr(module, time, 60.0)
setattr(first_start, "UNKNOWN_KEY_PRESENTED_S", float("inf"))

connectors: dict[str, Connector] = {}
deliveries: list[Delivery] = []
tasks: set["asyncio.Task[None]"] = set()


def say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


def connector_of(name: str, listens: bool, **options: Any) -> Connector:
    if name in connectors:
        return connectors[name]
    connector = connectors[name] = Connector(**options_of(**options))

    def tell(event: Any, value_of: Callable[[Any], dict[str, Any]]) -> None:
        connector.on(event, lambda value: say(agent=name, event=event, value=value_of(value)))

    if listens:
        tell("delivery", delivery_of)
    tell("state", state_of)
    tell("notice", lambda notice: {"kind": notice.kind, **notice.members})
    tell("error", error_of)
    tell("warning", lambda warning: {"code": warning.code, "hint": warning.hint})
    tell("overflow", lambda dropped: {"dropped": dropped})
    return connector


def options_of(
    sealing_keys: Any = (), trust: Any = None, max_delivery_age_ms: Any = None, start_timeout_ms: Any = None, **rest: Any
) -> dict[str, Any]:
    options = {**rest, "sealing_keys": [pair["private_key"] for pair in sealing_keys]}
    if trust is not None:
        options["trust"] = Trust(**trust)
    if max_delivery_age_ms is not None:
        options["max_delivery_age"] = max_delivery_age_ms / 1000
    if start_timeout_ms is not None:
        options["start_timeout"] = start_timeout_ms / 1000
    return options


def delivery_of(delivery: Delivery) -> dict[str, Any]:
    deliveries.append(delivery)
    names = ("envelope", "type", "payload", "session_id", "task_id", "verified", "issuer", "sealed")
    members = {name: getattr(delivery, name) for name in names}
    return {"number": len(deliveries) - 1, "from": delivery.sender, **members}


def state_of(state: Any) -> dict[str, Any]:
    code = getattr(state.cause, "code", None) if state.status == "closed" else None
    return {"status": state.status, "reason": state.reason, "close_code": state.close_code, "code": code}


def error_of(error: Exception) -> dict[str, Any]:
    if isinstance(error, ValueError):
        return {"code": "invalid_options"}
    if not isinstance(error, RelayError):
        return {"code": "not_a_relay_error", "hint": repr(error)}
    names = ("code", "message", "hint", "retry", "outcome", "close_code", "envelope_id", "missing")
    errors = [dataclasses.asdict(problem) for problem in error.errors]
    return {"errors": errors, **{name: getattr(error, name) for name in names}}


def accepted_of(accepted: Accepted) -> dict[str, Any]:
    """`status` is the session's, `delivery` the target's."""
    return {"session_id": None, "status": None, **dataclasses.asdict(accepted)}


def call_options(given: dict[str, Any]) -> dict[str, Any]:
    durations = {"timeout_ms": "timeout", "wait_online_ms": "wait_online"}
    seconds = {durations[name]: value / 1000 for name, value in given.items() if name in durations}
    return {**{name: value for name, value in given.items() if name not in durations}, **seconds}


async def start(connector: Connector, given: dict[str, Any]) -> None:
    await connector.start(**call_options(given))


async def close(connector: Connector, _: dict[str, Any]) -> None:
    await connector.close()


async def ask(connector: Connector, given: dict[str, Any]) -> dict[str, Any]:
    return delivery_of(await connector.ask(**call_options(given)))


async def reply(_: Connector, given: dict[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in given.items() if name != "delivery"}
    return accepted_of(await deliveries[given["delivery"]].reply(**call_options(rest)))


async def receipt(connector: Connector, given: dict[str, Any]) -> Any:
    return connector.receipt(**given)


async def verified(_: Connector, given: dict[str, Any]) -> dict[str, Any]:
    return dataclasses.asdict(verify_receipt(json.dumps(given["receipt"]), given["issuers"]))


def presence_of(presence: Presence) -> dict[str, Any]:
    names = ("agent", "status", "can_deliver_realtime")
    return {name: getattr(presence, name) for name in names}


async def check_online(connector: Connector, given: dict[str, Any]) -> dict[str, Any]:
    return presence_of(await connector.check_online(**call_options({"timeout_ms": 60_000, **given})))


async def wait_online(connector: Connector, given: dict[str, Any]) -> dict[str, Any]:
    return presence_of(await connector.wait_online(**call_options(given)))


async def dropped(connector: Connector, _: dict[str, Any]) -> dict[str, int]:
    return dict(connector.dropped)


async def read(connector: Connector, _: dict[str, Any]) -> dict[str, Any]:
    return {"read": [delivery_of(delivery) async for delivery in connector]}


def accepting(method: Callable[..., Awaitable[Accepted]]) -> Callable[..., Awaitable[dict[str, Any]]]:
    async def action(connector: Connector, given: dict[str, Any]) -> dict[str, Any]:
        return accepted_of(await method(connector, **call_options(given)))

    return action


ACTIONS: dict[str, Callable[..., Awaitable[Any]]] = {
    "start": start,
    "close": close,
    "send": accepting(Connector.send),
    "ask": ask,
    "reply": reply,
    "request_session": accepting(Connector.request_session),
    "approve": accepting(Connector.approve),
    "reject": accepting(Connector.reject),
    "receipt": receipt,
    "verify_receipt": verified,
    "check_online": check_online,
    "wait_online": wait_online,
    "dropped": dropped,
    "read": read,
}


async def perform(call: int, agent: str, does: str, given: dict[str, Any], options: dict[str, Any]) -> None:
    try:
        say(call=call, result=await ACTIONS[does](connector_of(agent, **options), given))
    except Exception as error:
        say(call=call, error=error_of(error))


async def main() -> None:
    lines = asyncio.StreamReader(limit=2**20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async for line in lines:
        task = asyncio.create_task(perform(**json.loads(line)))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*(connector.close() for connector in connectors.values()))


logging.getLogger("agent_relay_connector").setLevel(logging.ERROR)
asyncio.run(main())
