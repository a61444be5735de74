"""Where a relay is."""

import re
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address

_WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_DEFAULT_PORTS = {"ws": 80, "wss": 443}
# What trim() of ECMAScript takes off.
_WHITE_SPACE = (
    "\t\n\v\f\r \xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
# Scheme, authority, path, the rest. The URL standard reads a backslash as a slash.
_ADDRESS = re.compile(r"(https?|wss?)://([^\\/?#]*)([^?#]*)(.*)", re.ASCII | re.IGNORECASE | re.DOTALL)
_HOST_AND_PORT = re.compile(r"(\[.*\]|[^:]*)(?::([^:]*))?", re.DOTALL)
_PORT = re.compile(r"0*[0-9]{0,5}")
_IPV6 = re.compile(r"\[([0-9A-Fa-f:.]*)\]")
_NAME = re.compile(r"[A-Za-z0-9_.-]+")
# Source: RFC 1035, section 2.3.4.
_LABELS = re.compile(r"(?=.{1,253}\.?\Z)[^.]{1,63}(?:\.[^.]{1,63})*\.?")
# A host whose last label is one counts as IPv4. Source: WHATWG URL, "ends-in-a-number checker".
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
# What the URL standard leaves as it is, and RFC 3986 allows.
_PATH = re.compile(r"[A-Za-z0-9_.~!$&'()*+,;=:%/-]*")
_INVALID_SCHEME = "The address must begin with http://, https://, ws:// or wss://."
_CREDENTIALS = (
    "The address must not have a user or a password. Remove both and the @, or write %40 for an @ in the path."
)
_QUERY = "The address has a query or a fragment, and neither is sent. Remove the ? or # and what follows."
_NO_HOST = "The address has no host. Write one after //, such as https://relay.example."
_INVALID_PORT = "The port of the address is not valid. Write a number up to 65535."
_INVALID_HOST = (
    "The host of the address is not valid. "
    "Write a name such as relay.example, or an IP address such as 127.0.0.1 or [::1]."
)
_NOT_ASCII = (
    "The host of the address is not ASCII. Write its ASCII form, such as xn--bcher-kva.example for bücher.example."
)
_INVALID_NAME = (
    "The host of the address has a character that no host has, such as a space or %. "
    "Write a name of letters, digits, dots, - and _."
)
_INVALID_IPV4 = (
    "The host of the address ends in a number, so it must be an IPv4 address. "
    "Write its four numbers without leading zeros, such as 127.0.0.1."
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
    text = str(given).strip(_WHITE_SPACE)
    parts = _ADDRESS.fullmatch(text)
    if parts is None:
        raise ValueError(_INVALID_SCHEME)
    # A password may contain a slash: then the @ after it is in what looks like the path.
    if "@" in text:
        raise ValueError(_CREDENTIALS)
    given_scheme, authority, given_path, rest = parts.groups()
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
    names = given.lower().replace("%2e", ".").split("/")
    if not _PATH.fullmatch(given) or "." in names or ".." in names:
        raise ValueError(_INVALID_PATH)
    return given


def _host_and_port(authority: str, default_port: int) -> str:
    """As the URL standard writes them: the relay compares what a register names with that."""
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
    if given.startswith("["):
        return f"[{_ipv6(given)}]"
    if not _NAME.fullmatch(given):
        raise ValueError(_INVALID_NAME)
    name = given.lower()
    if _NUMBER.fullmatch(name.removesuffix(".").rpartition(".")[2]):
        return _ipv4(name)
    if not _LABELS.fullmatch(name):
        raise ValueError(_INVALID_HOST)
    return name


def _ipv4(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except ValueError:
        raise ValueError(_INVALID_IPV4) from None


def _ipv6(host: str) -> str:
    given = _IPV6.fullmatch(host)
    if given is None:
        raise ValueError(_INVALID_HOST)
    try:
        address = IPv6Address(given[1])
    except ValueError:
        raise ValueError(_INVALID_HOST) from None
    if address.ipv4_mapped is None:
        return str(address)
    # Python 3.13 writes the last two groups of these as IPv4.
    high, low = divmod(int(address.ipv4_mapped), 0x10000)
    return f"::ffff:{high:x}:{low:x}"
