"""A connection over TCP to the first address of a name that answers. Source: RFC 8305."""

import asyncio
import socket
import threading
from contextlib import suppress
from itertools import chain, zip_longest
from typing import Any

from .limits import NEXT_ADDRESS_S


async def dial(host: str, port: int) -> socket.socket:
    """Raises OSError: of the first address. Its caller bounds the time; cancelled, it leaves no socket."""
    addresses = _by_turns(await _look_up(host, port))
    attempts: list[asyncio.Task[socket.socket]] = []
    chosen: asyncio.Task[socket.socket] | None = None
    try:
        while chosen is None:
            if addresses:
                attempts.append(asyncio.create_task(_connected(addresses.pop(0))))
            under_way = [attempt for attempt in attempts if not attempt.done()]
            if not under_way:
                break
            limit_s = NEXT_ADDRESS_S if addresses else None
            await asyncio.wait(under_way, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
            chosen = next((attempt for attempt in attempts if attempt.done() and not attempt.exception()), None)
        return await (chosen or attempts[0])
    finally:
        for attempt in attempts:
            if not attempt.cancel() and attempt is not chosen and attempt.exception() is None:
                attempt.result().close()


async def _look_up(host: str, port: int) -> list[Any]:
    """In a thread for which nobody waits, not even the end of the interpreter: the event loop's own would hold that up."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[Any]] = loop.create_future()

    def tell(addresses: list[Any], failure: Exception | None) -> None:
        if found.done():
            return
        if failure is None:
            found.set_result(addresses)
        else:
            found.set_exception(failure)

    def run() -> None:
        addresses: list[Any] = []
        failure: Exception | None = None
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            failure = error
        except UnicodeError as error:
            failure = socket.gaierror(socket.EAI_NONAME, str(error))
        # The loop may have been closed meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, addresses, failure)

    threading.Thread(target=run, name="agent-relay-name", daemon=True).start()
    return await found


def _by_turns(addresses: list[Any]) -> list[Any]:
    """One of each family in turn, in the order of the system."""
    families: dict[int, list[Any]] = {}
    for address in addresses:
        families.setdefault(address[0], []).append(address)
    return [address for address in chain.from_iterable(zip_longest(*families.values())) if address is not None]


async def _connected(found: Any) -> socket.socket:
    family, kind, protocol, _, address = found
    connection = socket.socket(family, kind, protocol)
    try:
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection
