"""Which proxy is on the way to an address: the environment names it."""

import re
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Literal
from urllib.parse import unquote_to_bytes, urlsplit

# `portal`: it let the connection through, and a page of its own may answer in it. Of these only `failed` may pass.
Problem = Literal["unusable", "no_http", "portal", "failed"]

_DEFAULT_PORTS = {"http": 80, "ws": 80, "https": 443, "wss": 443}
# User and password, IPv6 or another host, port. The last @ ends the password.
_PROXY = re.compile(
    r"(?:http://)?(?:([^/?#\\]*)@)?(?:\[([0-9a-f:.]+)\]|([a-z0-9._-]+))(?::([0-9]{1,5}))?/?", re.ASCII | re.IGNORECASE
)
# Of NO_PROXY: a host, an address or a range of them, with or without a port. IPv6 with a port has brackets.
_EXCEPTION = re.compile(r"(?:\[(.+)\]|([^:]+))(?::([0-9]{1,5}))?")


@dataclass(frozen=True)
class Target:
    """Where an address leads. host: without the brackets of IPv6, and without a dot at its end."""

    host: str
    port: int
    # As CONNECT names it.
    place: str


@dataclass(frozen=True)
class Proxy:
    """variable: what named it, as the user spelled it. authorization: has the password, which nobody may see."""

    variable: str
    host: str
    port: int
    authorization: str | None = field(repr=False)

    @property
    def place(self) -> str:
        return _place(self.host, self.port)

    def error(
        self, problem: Problem, what: str, status: int | None = None, retry_after: float | None = None
    ) -> "ProxyError":
        why = f"the proxy http://{self.place} of {self.variable} {what}"
        return ProxyError(problem, self.variable, why, status, retry_after, self.authorization is not None)


class ProxyError(OSError):
    """A proxy that did not connect. Its text is the end of a sentence, without user and password.

    status, retry_after: of an answer that refuses, the latter in seconds. `__cause__`: why the proxy itself is not reachable.
    """

    def __init__(
        self,
        problem: Problem,
        variable: str,
        why: str,
        status: int | None = None,
        retry_after: float | None = None,
        has_password: bool = False,
    ) -> None:
        super().__init__(why)
        self.problem = problem
        self.variable = variable
        self.status = status
        self.retry_after = retry_after
        self.has_password = has_password


def target_of(url: str) -> Target:
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or _DEFAULT_PORTS[parts.scheme]
    return Target(host.removesuffix("."), port, _place(host, port))


def proxy_of(url: str, environment: Mapping[str, str]) -> Proxy | None:
    """None: the address is reached without a proxy. Raises ProxyError for a value that names none."""
    is_secure = urlsplit(url).scheme in ("https", "wss")
    variable, value = _first_of(environment, "https_proxy" if is_secure else "http_proxy")
    _, exceptions = _first_of(environment, "no_proxy")
    # Under CGI it is a header of a client.
    is_header = variable == "HTTP_PROXY" and "REQUEST_METHOD" in environment
    if not value or is_header or _goes_without(target_of(url), exceptions):
        return None
    given = None if re.search(r"\s", value) else _PROXY.fullmatch(value)
    port = int(given[4] or 80) if given is not None else 0
    if given is None or not 0 < port < 65_536 or (given[2] and not isinstance(_address(given[2]), IPv6Address)):
        raise ProxyError("unusable", variable, f"{variable} names no proxy that can be used")
    return Proxy(variable, (given[2] or given[3]).lower(), port, _basic(given[1]) if given[1] not in (None, "", ":") else None)


def _first_of(environment: Mapping[str, str], name: str) -> tuple[str, str]:
    """The variable of this name that counts, and its value."""
    values = [(variable, environment.get(variable, "").strip()) for variable in (name, name.upper())]
    return values[0] if values[0][1] else values[1]


def _basic(user_and_password: str) -> str:
    """Source: RFC 7617, section 2."""
    user, _, password = user_and_password.encode("utf-8", "surrogateescape").partition(b":")
    return f"Basic {b64encode(unquote_to_bytes(user) + b':' + unquote_to_bytes(password)).decode()}"


def _goes_without(target: Target, exceptions: str) -> bool:
    """exceptions: the value of NO_PROXY. This machine is never reached through a proxy."""
    if _is_under(target.host, "localhost") or _is_in(target.host, "127.0.0.0/8") or _is_in(target.host, "::1"):
        return True
    return any(entry == "*" or _fits(entry, target) for entry in re.split(r"[,\s]+", exceptions.lower()))


def _fits(entry: str, target: Target) -> bool:
    given = _EXCEPTION.fullmatch(entry)
    if given is None:
        # IPv6 without brackets, or nothing.
        return _is_in(target.host, entry)
    if given[3] and int(given[3]) != target.port:
        return False
    meant = given[1] or given[2]
    name = re.sub(r"^\*?\.", "", meant).removesuffix(".")
    return _is_in(target.host, meant) or _is_under(target.host, name)


def _is_under(host: str, name: str) -> bool:
    return name != "" and _address(host) is None and f".{host}".endswith(f".{name}")


def _is_in(host: str, given: str) -> bool:
    """given: an address, or a range of them: ranges with a netmask are none."""
    address = _address(host)
    try:
        return address is not None and "." not in given.partition("/")[2] and address in ip_network(given, strict=False)
    except ValueError:
        return False


def _address(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
