"""Agent ids: `agent://` and a name. Source: docs/protocol.md#agents."""

import re

AGENT_SCHEME = "agent://"
_AGENT_ID = re.compile(r"agent://[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?")


def is_agent_id(value: object) -> bool:
    return isinstance(value, str) and _AGENT_ID.fullmatch(value) is not None
