"""Why a relay could not be reached, and what to do about it."""

import asyncio
import errno
import math
import os
import re
import socket
import ssl
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from email.utils import formatdate, parsedate_to_datetime
from typing import Literal
from urllib.parse import urljoin, urlsplit

from websockets.datastructures import Headers
from websockets.exceptions import InvalidHandshake, InvalidMessage

from .error_catalogue import Retry
from .errors import RelayError
from .limits import RETRY_AFTER_CAP_S
from .proxy import ProxyError, target_of


class UpgradeRefused(InvalidHandshake):
    """An HTTP answer in place of the upgrade, with the headers that are told. A Location may contain a password."""

    def __init__(self, status: int, headers: Headers) -> None:
        super().__init__(f"HTTP {status}")
        self.status_code = status
        self.headers = Headers()
        for name, value in headers.raw_items():
            if name.lower() == "retry-after":
                self.headers[name] = value
            if name.lower() == "location":
                self.headers[name] = _without_secrets(value)


class NotHttp(OSError):
    """What answered does not speak HTTP."""


class FaultyAnswer(OSError):
    """What answered speaks HTTP, and something in its answer is not HTTP."""


def without_secrets(failure: Exception) -> Exception:
    """What an attempt to connect failed with, as it may be shown: the library keeps headers of an answer, or quotes them."""
    if isinstance(failure, InvalidMessage) and not isinstance(failure.__cause__, (OSError, EOFError, type(None))):
        words = str(failure.__cause__)
        is_other = _OTHER_START.search(words) is not None and ": HTTP/1." not in words
        return NotHttp(str(failure)) if is_other else FaultyAnswer(str(failure))
    status = _status_of(failure)
    if status is None and isinstance(failure, InvalidHandshake) and not isinstance(failure, InvalidMessage):
        # The library read the answer, and refuses its headers.
        return UpgradeRefused(101, Headers())
    return failure if status is None else UpgradeRefused(status, _headers_of(failure))


@dataclass(frozen=True)
class NetworkError:
    """why: the end of a sentence. retry: `fix`: trying again cannot help."""

    why: str
    hint: str
    retry: Retry


_NETWORK_HINT = "Check this machine's network, and firewalls between it and the relay."
_SELF_SIGNED_HINT = (
    "Give the relay a public certificate, or have Python trust its authority: SSL_CERT_FILE=ca.pem in the environment."
)
_CHAIN_HINT = "The server must send its intermediate certificates, or SSL_CERT_FILE must name its authority."

_CUT_OFF = NetworkError(
    "connection reset",
    "Something ended the connection at once: where the port speaks TLS, use https:// (or wss://).",
    "later",
)
_NO_HTTP = NetworkError(
    "what answers there does not speak HTTP",
    "Correct the host and port of the relay's address; if the port speaks TLS, use https:// (or wss://).",
    "fix",
)
_FAULTY = NetworkError(
    "its answer is not valid HTTP", "An edge may answer so while its relay is away. If it lasts, ask the operator.", "later"
)
_SILENT = NetworkError("the host does not answer", _NETWORK_HINT, "later")
_NAME_HINT = (
    "Correct the host of the relay's address, or wait until this machine's DNS knows it. "
    "Behind a proxy set HTTPS_PROXY, for http:// HTTP_PROXY, and leave the host out of NO_PROXY."
)
_UNKNOWN_HOST = NetworkError("unknown host", _NAME_HINT, "later")
_UNRESOLVED = NetworkError("the host name could not be resolved", _NAME_HINT, "later")
_NO_TLS = NetworkError(
    "it does not speak TLS on this port",
    "This port speaks plain http: use http:// (or ws://), or the port of the relay's TLS.",
    "fix",
)
_OTHER = NetworkError(
    "the connection failed", "Check the address, this machine's network, and that the relay runs.", "later"
)
_UNVERIFIED = NetworkError("its certificate cannot be verified", _CHAIN_HINT, "fix")
_SELF_SIGNED = NetworkError("its certificate is self-signed", _SELF_SIGNED_HINT, "fix")
_OTHER_HOST = NetworkError("its certificate is for another host", "Use a host name that it names.", "fix")

_BY_ERRNO = {
    errno.ECONNREFUSED: NetworkError(
        "connection refused", "Start the relay, or correct the host and port of its address.", "later"
    ),
    errno.EHOSTUNREACH: NetworkError("the host is not reachable", _NETWORK_HINT, "later"),
    errno.ENETUNREACH: NetworkError("the network is not reachable", _NETWORK_HINT, "later"),
}
_WANTS_A_CERTIFICATE = NetworkError(
    "it wants a certificate of its client",
    "The connector presents none: ask the relay's operator for an address that wants none.",
    "fix",
)
_NO_COMMON_TLS = NetworkError(
    "it and this machine do not agree on TLS",
    "They need a version and a cipher in common: update Python, or ask the relay's operator for TLS 1.2 or later. "
    "A server that wants a certificate of its client may say the same; the connector presents none.",
    "fix",
)
_NOT_ITS_NAME = NetworkError("it serves no host of this name", "Use a host name that it serves.", "fix")
_TLS_FAILED = NetworkError(
    "TLS failed", "Ask the relay's operator what its TLS needs; the connector tries again.", "later"
)
# Of OpenSSL: its own, and the alerts of the other side. Versions of it spell some with TLSV1, some with TLSV1_ALERT.
_BY_TLS_REASON = {
    **dict.fromkeys(
        ("WRONG_VERSION_NUMBER", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"), _NO_TLS
    ),
    **dict.fromkeys(("TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_BAD_CERTIFICATE"), _WANTS_A_CERTIFICATE),
    **dict.fromkeys(
        (
            "SSLV3_ALERT_HANDSHAKE_FAILURE",
            "TLSV1_ALERT_PROTOCOL_VERSION",
            "TLSV1_ALERT_INSUFFICIENT_SECURITY",
            "UNSUPPORTED_PROTOCOL",
        ),
        _NO_COMMON_TLS,
    ),
    **dict.fromkeys(("TLSV1_UNRECOGNIZED_NAME", "TLSV1_ALERT_UNRECOGNIZED_NAME"), _NOT_ITS_NAME),
}
# Of OpenSSL: X509_V_ERR_*.
_BY_VERIFY_CODE = {
    9: NetworkError("its certificate is not valid yet", "Set this machine's clock.", "fix"),
    10: NetworkError("its certificate has expired", "Renew it, or set this machine's clock.", "fix"),
    23: NetworkError("its certificate was revoked", "The server needs another certificate.", "fix"),
    18: _SELF_SIGNED,
    19: _SELF_SIGNED,
    62: _OTHER_HOST,
    64: _OTHER_HOST,
}

_PATH_HINT = "Correct the path of the relay's address; a proxy in front must pass its websocket on."
_EDGE_HINT = (
    "An edge in front of the relay refuses this client. Envoy does so while no pod is ready, and it passes. "
    "If it lasts, ask the operator."
)
_REDIRECT_HINT = "Use the address that it redirects to; http:// often becomes https://."
_NOWHERE_HINT = "It does not say where to. Correct the relay's address; http:// often becomes https://."
_UPGRADE_HINT = "The server there must be a relay, and a proxy in between must pass websocket upgrades."
# What servers of TLS, such as nginx, answer to plain HTTP.
_PLAIN_TO_TLS_HINT = "If the port speaks TLS, use https:// (or wss://). Else the server there must be a relay."
_LATER_HINT = "The relay, or a proxy in front of it, has no room or is down"
_PROXY_HINT = (
    "Write http://host:port, or http://user:password@host:port. SOCKS and proxies over TLS are not supported."
)
_PROXY_LATER_HINT = "It does not reach the relay at the moment"
_DEFAULT_PORTS = {"http": 80, "https": 443}
# The library's words for a first line that it does not take, which it quotes.
_OTHER_START = re.compile("status line|protocol|version|status code")
# In characters of RFC 3986 alone, and with a host after a scheme or //: others mean different places to different clients.
_LOCATION = re.compile(
    r"(?!//(?:/|\Z)|(?:[a-z][a-z0-9+.-]*:)(?!//[^/]))[A-Za-z0-9_.~:/\[\]@!$&'()*+,;=%-]+", re.ASCII | re.IGNORECASE
)
# Characters of it in an error.
_MOST_OF_LOCATION = 200
# Timeout, too early, too many requests: other refusals of the client are as true at the next attempt.
_PASSING = (408, 425, 429)


def unreachable(url: str, cause: Exception | None) -> RelayError:
    """The error of an attempt that reached no relay.

    url: the address that was tried, of a websocket or of HTTP. cause: what it failed with, if that is known.
    """
    if cause is None:
        return RelayError("unreachable")
    reason = _reason(cause, url)
    place = "http" + url.removeprefix("ws").removeprefix("http")
    message = f"The relay at {place} is not reachable: {reason.why}."
    error = RelayError("unreachable", message, reason.hint, retry=reason.retry)
    error.retry_after = retry_after_s(cause)
    error.__cause__ = cause
    return error


def no_relay_at(base: str, status: int, headers: Mapping[str, str]) -> RelayError:
    """The error of an answer over HTTP that no relay gave, or that lets nobody through to one.

    headers: by their names in lower case.
    """
    to = _redirect_of(status, headers.get("location"), base)
    # A proxy in front of a relay that is away speaks for itself.
    code = "unreachable" if may_pass(status) else "not_a_relay"
    message = f"No Agent Relay answers at {base}: the answer was {status}{to}."
    wait_s = _retry_after_in(status, headers.get("retry-after"))
    error = RelayError(code, message, _hint_of_status(status, base, to, wait_s), retry_after=wait_s)
    return error


def unspoken_in(failure: Exception) -> Literal["TLS", "HTTP"] | None:
    """What the other end does not speak, if it is that which failed."""
    if isinstance(failure, NotHttp):
        return "HTTP"
    return "TLS" if isinstance(failure, ssl.SSLError) and _BY_TLS_REASON.get(failure.reason) is _NO_TLS else None


def is_refused_by_proxy(error: RelayError) -> bool:
    """Whether a proxy answered that it does not connect."""
    return isinstance(error.__cause__, ProxyError) and error.__cause__.status is not None


def is_refused_upgrade(error: RelayError) -> bool:
    """Whether something answered that is no relay, or none for this client: it may be an edge whose relay is being changed."""
    return error.__cause__ is not None and _status_of(error.__cause__) is not None


def retry_after_s(cause: BaseException | None) -> float | None:
    """The wait that the answer asked for with which an attempt failed."""
    if isinstance(cause, ProxyError):
        return cause.retry_after
    return _retry_after_in(_status_of(cause), _header(cause, "Retry-After"))


def _retry_after_in(status: int | None, header: str | None) -> float | None:
    """None of a status that does not pass: a start that ends after a while must not wait past its end."""
    return retry_after_of(header) if status is not None and may_pass(status) else None


def retry_after_of(header: str | None) -> float | None:
    """The wait that an answer asks for: in seconds, or until an IMF-fixdate. Source: RFC 9110, section 10.2.3."""
    text = header or ""
    try:
        wait_s = float(text) if re.fullmatch("[0-9]+", text) else _until_s(text) - time.time()
    except (TypeError, ValueError, OverflowError):
        return None
    return min(wait_s, RETRY_AFTER_CAP_S) if wait_s > 0 else None


def _until_s(text: str) -> float:
    """Raises TypeError, ValueError or OverflowError."""
    until_s = parsedate_to_datetime(text).timestamp()
    # The library takes many other texts.
    if formatdate(until_s, usegmt=True) != text:
        raise ValueError("no IMF-fixdate")
    return until_s


def may_pass(status: int) -> bool:
    """Whether another attempt may be answered otherwise than with this HTTP status."""
    return status >= 500 or status in _PASSING


def _reason(cause: BaseException, websocket: str) -> NetworkError:
    if isinstance(cause, ProxyError):
        return _of_proxy(cause, websocket)
    status = _status_of(cause)
    if status is not None:
        return _upgrade_refusal(status, websocket, _header(cause, "Location"), retry_after_s(cause))
    if isinstance(cause, NotHttp):
        return _NO_HTTP
    if isinstance(cause, FaultyAnswer):
        return _FAULTY
    if isinstance(cause, ssl.SSLCertVerificationError):
        return _with_authorities(_BY_VERIFY_CODE.get(cause.verify_code, _UNVERIFIED))
    if isinstance(cause, InvalidMessage) and isinstance(cause.__cause__, ssl.SSLError):
        # TLS 1.3 refuses a client once that has begun to speak.
        return _reason(cause.__cause__, websocket)
    if isinstance(cause, (ConnectionResetError, BrokenPipeError, EOFError, ssl.SSLEOFError, InvalidMessage)):
        return _CUT_OFF
    if isinstance(cause, ssl.SSLError):
        return _BY_TLS_REASON.get(cause.reason, _TLS_FAILED)
    if isinstance(cause, socket.gaierror):
        return _UNRESOLVED if cause.errno == socket.EAI_AGAIN else _UNKNOWN_HOST
    if isinstance(cause, (TimeoutError, asyncio.TimeoutError)):
        return _SILENT
    return _BY_ERRNO.get(getattr(cause, "errno", None) or 0, _OTHER)


def _with_authorities(error: NetworkError) -> NetworkError:
    """OpenSSL goes on without a file that it cannot read."""
    file = os.environ.get("SSL_CERT_FILE")
    if "SSL_CERT_FILE" not in error.hint or not file or os.access(file, os.R_OK):
        return error
    return replace(error, hint=f"{error.hint} {file}, which SSL_CERT_FILE names, cannot be read.")


def _of_proxy(error: ProxyError, url: str) -> NetworkError:
    why = str(error) if error.__cause__ is None else f"{error}: {_reason(error.__cause__, url).why}"
    target = target_of(url)
    if error.problem == "unusable":
        return NetworkError(why, f"{_PROXY_HINT} NO_PROXY={target.host} goes without a proxy.", "fix")
    if error.problem == "portal":
        is_secure = url.startswith(("wss:", "https:"))
        other = "plain http, use http:// (or ws://)" if is_secure else "TLS, use https:// (or wss://)"
        hint = (
            f"It may show a page of its own in place of {target.place}, such as a login: ask who runs it, or name "
            f"{target.host} in NO_PROXY. If the relay's port speaks {other}."
        )
        return NetworkError(why, hint, "fix")
    if error.status is None:
        hint = f"Start the proxy, correct {error.variable}, or name {target.host} in NO_PROXY."
        return NetworkError(why, hint, "fix" if error.problem == "no_http" else "later")
    if error.status == 407:
        hint = (
            f"It does not take the user and the password of {error.variable}. "
            "Percent-encode what is no letter or digit in them."
            if error.has_password
            else f"It wants a user and a password: {error.variable}=http://user:password@host:port."
        )
        return NetworkError(why, hint, "fix")
    if may_pass(error.status):
        return NetworkError(why, f"{_PROXY_LATER_HINT}: {_try_again(error.retry_after)}.", "later")
    hint = f"It does not connect to {target.place}: ask who runs it, or name {target.host} in NO_PROXY."
    return NetworkError(why, hint, "fix")


def _status_of(cause: BaseException | None) -> int | None:
    """Of an HTTP answer in place of the upgrade: versions of `websockets` keep it in different places."""
    status = getattr(cause, "status_code", None) or getattr(getattr(cause, "response", None), "status_code", None)
    return status if isinstance(status, int) else None


def _header(cause: BaseException | None, name: str) -> str | None:
    return next(iter(_headers_of(cause).get_all(name)), None)


def _headers_of(cause: BaseException | None) -> Headers:
    headers = getattr(cause, "headers", None) or getattr(getattr(cause, "response", None), "headers", None)
    return headers if isinstance(headers, Headers) else Headers()


def _without_secrets(location: str) -> str:
    """Without user, password and query. Empty where it is no URL of HTTP."""
    given = re.split("[?#]", location)[0]
    if not _LOCATION.fullmatch(given):
        return ""
    try:
        parts = urlsplit(given)
        has_port = parts.port is not None
    except ValueError:
        return ""
    if parts.scheme not in ("", "http", "https"):
        return ""
    host = parts.netloc.rpartition("@")[2].lower()
    port = f":{_DEFAULT_PORTS.get(parts.scheme)}"
    host = host.removesuffix(port) if has_port else host.removesuffix(":")
    path = parts.path or ("/" if host else "")
    return parts._replace(netloc=host, path=path).geturl()


def _upgrade_refusal(status: int, websocket: str, location: str | None, wait_s: float | None) -> NetworkError:
    to = _redirect_of(status, location, websocket)
    answered = "101, without the headers of a websocket" if status == 101 else f"{status}{to}"
    why = f"the upgrade to a websocket was answered with {answered}"
    hint = _hint_of_status(status, websocket, to, wait_s) or (_hint_of_path(websocket) if status == 404 else _UPGRADE_HINT)
    if may_pass(status):
        return NetworkError(why, hint, "later")
    return NetworkError(why, _path_hint(websocket) + hint, "fix")


def _hint_of_status(status: int, url: str, to: str, wait_s: float | None) -> str | None:
    if may_pass(status):
        return f"{_LATER_HINT}: {_try_again(wait_s)}."
    if status in (401, 403):
        return _EDGE_HINT
    if 300 <= status < 400:
        return _REDIRECT_HINT if to else _NOWHERE_HINT
    return _PLAIN_TO_TLS_HINT if status == 400 and url.startswith(("ws://", "http://")) else None


def _try_again(wait_s: float | None) -> str:
    """The end of a hint."""
    return "try again later" if wait_s is None else f"try again in {math.ceil(wait_s)} s"


def _redirect_of(status: int, location: str | None, url: str) -> str:
    """Empty where nothing says where to."""
    to = _to(location, url) if 300 <= status < 400 and location is not None else ""
    return f", a redirect{to}" if to else ""


def _to(location: str, url: str) -> str:
    """Empty where it is no URL of HTTP. url: that was asked, of a websocket or of HTTP."""
    place = _without_secrets(location)
    base = "http" + url.removeprefix("ws").removeprefix("http")
    try:
        to = urljoin(base, place)
    except ValueError:
        return ""
    shown = to if len(to) <= _MOST_OF_LOCATION else f"{to[:_MOST_OF_LOCATION]}…"
    return f" to {shown}" if place else ""


def _hint_of_path(websocket: str) -> str:
    """Errors name the address that was dialled, with /ws. Whoever gives that dials another /ws behind it."""
    base = "http" + websocket.removeprefix("ws").removesuffix("/ws/ws")
    return f"Use {base}: the relay's address, without /ws." if websocket.endswith("/ws/ws") else _PATH_HINT


def _path_hint(websocket: str) -> str:
    """A websocket's address is dialled as it is: one with the prefix of the relay alone leads past its websocket."""
    if websocket.endswith("/ws"):
        return ""
    base = "http" + websocket.removeprefix("ws")
    return f"If the relay is at {base}, use that address, or {websocket}/ws. "
