"""Agent ids: `agent://` and a name. Source: docs/protocol.md#agents."""

import re

AGENT_SCHEME = "agent://"
_AGENT_ID = re.compile(r"agent://[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?")


def is_agent_id(value: object) -> bool:
    return isinstance(value, str) and _AGENT_ID.fullmatch(value) is not None


def is_agent_pattern(value: object) -> bool:
    """True for an agent id, and for the namespace of a team, such as `agent://acme.*`."""
    return isinstance(value, str) and is_agent_id(f"{value[:-2]}.x" if value.endswith(".*") else value)


def agent_id_problem(value: object) -> str | None:
    """What is wrong with a value in the place of an agent's id; None for one."""
    if is_agent_id(value):
        return None
    if isinstance(value, str) and is_agent_id(AGENT_SCHEME + value):
        return f"lacks {AGENT_SCHEME} in front: {AGENT_SCHEME}{value}"
    return "must be agent://<name>: at most 63 of a-z, 0-9, '.', '_', '-', no capital letters, a letter or digit first and last"
