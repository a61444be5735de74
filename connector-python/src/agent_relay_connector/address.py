"""Where a relay is."""

from dataclasses import dataclass
from urllib.parse import urlsplit

_WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_DEFAULT_PORTS = {"ws": 80, "wss": 443}


@dataclass(frozen=True)
class RelayAddress:
    websocket: str
    # Of its HTTP side, without a slash at its end.
    base: str
    # With a port that is not the default: what a register names, and a credential may.
    host: str


def relay_address(url: str, http_url: str | None = None) -> RelayAddress:
    """From a base address (http, https) or a websocket's (ws, wss; path /ws when it has none). The base of a websocket that
    does not end in /ws is the root of its host. http_url: the base, where it is elsewhere. Raises ValueError.
    """
    parts = urlsplit(url)
    scheme = _WEBSOCKET_SCHEMES.get(parts.scheme)
    if scheme is None or not parts.hostname:
        raise ValueError("url must be http(s):// or ws(s)://")
    host = _host(parts.hostname, None if parts.port == _DEFAULT_PORTS[scheme] else parts.port)
    is_base = parts.scheme.startswith("http")
    path = parts.path.rstrip("/")
    websocket = path + "/ws" if is_base else path or "/ws"
    parent = websocket[: -len("/ws")] if websocket.endswith("/ws") else ""
    base = relay_address(http_url).base if http_url else f"{scheme.replace('ws', 'http')}://{host}{parent}"
    return RelayAddress(
        websocket=f"{scheme}://{host}{websocket}",
        base=base,
        host=host,
    )


def _host(name: str, port: int | None) -> str:
    host = f"[{name}]" if ":" in name else name
    return host if port is None else f"{host}:{port}"
