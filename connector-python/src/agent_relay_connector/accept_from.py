"""Whom an agent accepts envelopes from. Source: docs/protocol.md#accept_from."""

from .agent_id import is_agent_pattern
from .credentials.contract import is_issuer_name
from .limits import MAX_ACCEPT_FROM

_ISSUER_ENTRY_PREFIX = "issuer:"


def is_accept_from(value: object) -> bool:
    """True for a list that the relay takes: agent ids, namespaces such as `agent://acme.*`, and `issuer:` with a name."""
    return isinstance(value, list | tuple) and len(value) <= MAX_ACCEPT_FROM and all(map(_is_entry, value))


def _is_entry(value: object) -> bool:
    if is_agent_pattern(value):
        return True
    if not isinstance(value, str) or not value.startswith(_ISSUER_ENTRY_PREFIX):
        return False
    return is_issuer_name(value.removeprefix(_ISSUER_ENTRY_PREFIX))
