"""Where a relay is."""

import re
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from string import whitespace

_WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_DEFAULT_PORTS = {"ws": 80, "wss": 443}
# Scheme, authority, path, the rest. The URL standard reads a backslash as a slash.
_ADDRESS = re.compile(r"(https?|wss?)://([^\\/?#]*)([^?#]*)(.*)", re.ASCII | re.IGNORECASE | re.DOTALL)
_HOST_AND_PORT = re.compile(r"(\[[^%]*\]|[^:]*)(?::([^:]*))?")
_PORT = re.compile(r"0*[0-9]{0,5}")
# What the URL standard leaves as it is, and RFC 3986 allows.
_PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@%/-]*")
# Source: WHATWG URL, "forbidden domain code point".
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f#%/:<>?@\[\\\]^|]")
# A host whose last label is one counts as IPv4. Source: WHATWG URL, "ends-in-a-number checker".
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_INVALID_SCHEME = "The address must begin with http://, https://, ws:// or wss://."
_CREDENTIALS = "The address has a user or a password, and neither is sent. Remove both, and the @."
_QUERY = "The address has a query or a fragment, and neither is sent. Remove the ? or # and what follows."
_NO_HOST = "The address has no host. Write one after //, such as https://relay.example."
_INVALID_PORT = "The port of the address is not valid. Write a number up to 65535."
_INVALID_HOST = (
    "The host of the address is not valid. "
    "Write a name such as relay.example, or an IP address such as 127.0.0.1 or [::1]."
)
# IDNA 2003 of the standard library gives another host for ß, ς, joiners, and characters newer than Unicode 3.2.
_NOT_ASCII = (
    "The host of the address is not ASCII. Write it as DNS has it, such as xn--bcher-kva.example for bücher.example."
)
_INVALID_PATH = (
    "The path of the address is not in its plain form. "
    "Write / for \\, leave out . and .. as names, and percent-encode other characters: a space is %20."
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
    address = _named_address("url", url)
    return replace(address, base=_named_address("http_url", http_url).base) if http_url else address


def _named_address(name: str, given: str) -> RelayAddress:
    try:
        return _address(given)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _address(given: str) -> RelayAddress:
    """Raises ValueError that says what to write, and never what is given: it may contain a password."""
    # An environment variable that is not set is None.
    parts = _ADDRESS.fullmatch(str(given).strip(whitespace))
    if parts is None:
        raise ValueError(_INVALID_SCHEME)
    given_scheme, authority, given_path, rest = parts.groups()
    if "@" in authority:
        raise ValueError(_CREDENTIALS)
    if rest:
        raise ValueError(_QUERY)
    is_base = given_scheme.lower().startswith("http")
    scheme = _WEBSOCKET_SCHEMES[given_scheme.lower()]
    host = _host_and_port(authority, _DEFAULT_PORTS[scheme])
    path = _path(given_path).rstrip("/")
    websocket = path + "/ws" if is_base else path or "/ws"
    parent = websocket[: -len("/ws")] if websocket.endswith("/ws") else ""
    return RelayAddress(
        websocket=f"{scheme}://{host}{websocket}",
        base=f"{scheme.replace('ws', 'http')}://{host}{parent}",
        host=host,
    )


def _path(given: str) -> str:
    """As the URL standard writes it. Raises ValueError for what it would write in another way."""
    names = given.lower().replace("%2e", ".").split("/")
    if not _PATH.fullmatch(given) or "." in names or ".." in names:
        raise ValueError(_INVALID_PATH)
    return given


def _host_and_port(authority: str, default_port: int) -> str:
    """As the URL standard writes them: the relay compares what a register names with that.

    Raises ValueError for spellings that need more than the standard library.
    """
    given = _HOST_AND_PORT.fullmatch(authority)
    if given is None:
        raise ValueError(_INVALID_HOST)
    if not given[1]:
        raise ValueError(_NO_HOST)
    digits = given[2] or str(default_port)
    if not _PORT.fullmatch(digits) or int(digits) > 65_535:
        raise ValueError(_INVALID_PORT)
    port = int(digits)
    host = _host(given[1])
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
