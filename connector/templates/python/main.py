import asyncio
import os
import sys

from agent_relay_connector import Connector, RelayError

from agent import serve

URL = os.environ.get("RELAY_URL") or "{{url}}"
KEY_FILE = os.environ.get("RELAY_KEY_FILE") or "{{key}}"


async def main() -> None:
    async with Connector(URL, key_file=KEY_FILE) as agent:
        print(f"{agent.agent} is online", flush=True)
        await serve(agent)


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except RelayError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        pass
