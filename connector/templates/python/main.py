import asyncio
import os
import signal
import sys
from contextlib import suppress

from agent_relay_connector import Connector, RelayError

from agent import serve

URL = os.environ.get("RELAY_URL") or "{{url}}"
KEY_FILE = os.environ.get("RELAY_KEY_FILE") or "{{key}}"


async def main() -> None:
    running = asyncio.current_task()
    assert running is not None
    with suppress(NotImplementedError):  # Windows has no SIGTERM.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    agent = Connector(URL, key_file=KEY_FILE)
    agent.on("state", lambda state: print(f"{agent.agent} is {state.status}", flush=True))
    async with agent:
        await serve(agent)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except RelayError as error:
        sys.exit(str(error))
    except (KeyboardInterrupt, asyncio.CancelledError):  # Ctrl-C, or SIGTERM: the connection is closed.
        pass
