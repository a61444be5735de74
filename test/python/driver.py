"""Connectors that tests drive: a JSON object a line, calls on standard input, results and events on standard output.

{"new": name, "options": {…}} makes a connector. {"call": n, "on": name, "method": …, "args": […], "options": {…}}
answers {"call": n, "result": …} or {"call": n, "error": {…}}; `reply` takes the number of a delivery, and `give_tokens` what the credential callback gives from then on. {"echo": name}
replies to what comes in as a `message.send`. {"clear": n} closes and forgets all connectors, and answers like a call.
"""

import asyncio
import dataclasses
import json
import sys
from typing import Any

from agent_relay_connector import Connector, CredentialWithKeys, Delivery, RelayError, Trust, verify_receipt

connectors: dict[str, Connector] = {}
# A connector may take the name of another.
made: list[Connector] = []
deliveries: list[Delivery] = []
tokens: dict[str, list[Any]] = {}
tasks: set["asyncio.Task[None]"] = set()


def say(**members: Any) -> None:
    print(json.dumps(members, default=plain), flush=True)


def plain(value: Any) -> Any:
    if isinstance(value, RelayError):
        names = ("code", "message", "hint", "retry", "outcome", "close_code", "missing")
        return {name: getattr(value, name) for name in names}
    if isinstance(value, Exception):
        return repr(value)
    fields = dataclasses.fields(value)
    return {field.name: getattr(value, field.name) for field in fields if not field.name.startswith("_")}


def make(name: str, options: dict[str, Any]) -> None:
    if "tokens" in options:
        tokens[name] = options.pop("tokens")

        async def credential() -> str | CredentialWithKeys:
            given = tokens[name].pop(0) if len(tokens[name]) > 1 else tokens[name][0]
            return CredentialWithKeys(**given) if isinstance(given, dict) else given

        options["credential"] = credential
    if "trust" in options:
        options["trust"] = Trust(**options["trust"])
    connector = connectors[name] = Connector(**options)
    made.append(connector)
    connector.on("state", lambda state: say(agent=name, state=state.status, close_code=state.close_code))
    connector.on("error", lambda error: say(agent=name, problem=error))
    connector.on("notice", lambda notice: say(agent=name, notice=notice.kind, members=notice.members))
    connector.on("delivery", lambda delivery: delivered(name, delivery))


def delivered(name: str, delivery: Delivery) -> None:
    deliveries.append(delivery)
    say(agent=name, delivery=delivery, number=len(deliveries) - 1)


async def echo(connector: Connector) -> None:
    async for delivery in connector:
        if delivery.type == "message.send":
            await delivery.reply(dict(delivery.payload))


async def call(request: dict[str, Any]) -> None:
    try:
        say(call=request["call"], result=await result_of(request))
    except (RelayError, ValueError) as error:
        say(call=request["call"], error=error)


async def result_of(request: dict[str, Any]) -> Any:
    method, args, options = request["method"], request.get("args", []), request.get("options", {})
    if method == "verify_receipt":
        return verify_receipt(*args)
    if method == "give_tokens":
        tokens[request["on"]] = args
        return None
    if method == "reply":
        return await deliveries[args[0]].reply(*args[1:], **options)
    result = getattr(connectors[request["on"]], method)
    result = result(*args, **options) if callable(result) else result
    return await result if asyncio.iscoroutine(result) else result


async def clear() -> None:
    """A test is over: the next one finds nothing of it."""
    for connector in made:
        await connector.close()
    connectors.clear()
    made.clear()
    deliveries.clear()
    tokens.clear()


def spawn(work: Any) -> None:
    task = asyncio.create_task(work)
    tasks.add(task)
    task.add_done_callback(tasks.discard)


async def main() -> None:
    asyncio.get_running_loop().slow_callback_duration = 10
    lines = asyncio.StreamReader(limit=2**20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async for line in lines:
        request = json.loads(line)
        if "new" in request:
            make(request["new"], request["options"])
        elif "echo" in request:
            spawn(echo(connectors[request["echo"]]))
        elif "clear" in request:
            await clear()
            say(call=request["clear"], result=None)
        else:
            spawn(call(request))
    await clear()


asyncio.run(main())
