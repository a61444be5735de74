"""Where a relay is."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from urllib.parse import urlsplit

_WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_DEFAULT_PORTS = {"ws": 80, "wss": 443}
# After a user and a password, which are not used. A backslash ends the host in the URL standard, and not in urlsplit.
_HOST_AND_PORT = re.compile(r"(?:[^\\]*@)?(\[[^%]*\]|[^:@]+)(?::([0-9]*))?")
# Source: WHATWG URL, "forbidden domain code point".
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f#%/:<>?@\[\\\]^|]")
# A host whose last label is one counts as IPv4. Source: WHATWG URL, "ends-in-a-number checker".
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_INVALID_HOST = (
    "The host of the address is not valid. "
    "Write a name such as relay.example, or an IP address such as 127.0.0.1 or [::1]."
)
# IDNA 2003 of the standard library gives another host for ß, ς, joiners, and characters newer than Unicode 3.2.
_NOT_ASCII = (
    "The host of the address is not ASCII. Write it as DNS has it, such as xn--bcher-kva.example for bücher.example."
)


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
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise ValueError(_INVALID_HOST) from error
    scheme = _WEBSOCKET_SCHEMES.get(parts.scheme)
    if scheme is None or not parts.netloc:
        raise ValueError("url must be http(s):// or ws(s)://")
    host = _host_and_port(parts.netloc, _DEFAULT_PORTS[scheme])
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


def _host_and_port(authority: str, default_port: int) -> str:
    """As the URL standard writes them: the relay compares what a register names with that.

    Raises ValueError for spellings that need more than the standard library.
    """
    given = _HOST_AND_PORT.fullmatch(authority)
    if given is None:
        raise ValueError(_INVALID_HOST)
    host = _host(given[1])
    port = int(given[2] or default_port)
    if port > 65_535:
        raise ValueError("The port of the address is not valid. Write a number up to 65535.")
    return host if port == default_port else f"{host}:{port}"


def _host(given: str) -> str:
    if not given.isascii():
        raise ValueError(_NOT_ASCII)
    try:
        if given.startswith("["):
            return f"[{_ipv6(given[1:-1])}]"
        name = given.lower()
        if _NUMBER.fullmatch(name.removesuffix(".").rpartition(".")[2]):
            return str(IPv4Address(name))
    except ValueError as error:
        raise ValueError(_INVALID_HOST) from error
    if _FORBIDDEN.search(name):
        raise ValueError(_INVALID_HOST)
    return name


def _ipv6(text: str) -> str:
    address = IPv6Address(text)
    if address.ipv4_mapped is None:
        return str(address)
    # Python 3.13 writes the last two groups of these as IPv4.
    high, low = divmod(int(address.ipv4_mapped), 0x10000)
    return f"::ffff:{high:x}:{low:x}"
