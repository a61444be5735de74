"""Small JSON look-ups over HTTP, off the event loop, by the standard library alone."""

import asyncio
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from .limits import LOOK_UPS_AT_ONCE, MAX_LOOK_UP_BYTES
from .strict_json import members_of, parse_json


@dataclass(frozen=True)
class Answer:
    status: int
    # The members of the JSON object; empty for anything else.
    members: Mapping[str, Any]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """What a relay answers, it answers itself."""

    def redirect_request(self, *_: Any) -> None:
        return None


class HttpClient:
    """At most LOOK_UPS_AT_ONCE at once; the others wait, in order."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LOOK_UPS_AT_ONCE, thread_name_prefix="agent-relay-look-up")
        self._has_stopped = False
        self._opener = urllib.request.build_opener(_NoRedirect)

    async def get(self, url: str, timeout_s: float) -> Answer:
        """Any answer, its wait for its turn included in the time. Raises OSError or asyncio.TimeoutError."""
        if self._has_stopped:
            raise OSError("the connector is closed")
        loop = asyncio.get_running_loop()
        return await asyncio.wait_for(loop.run_in_executor(self._threads, self._get, url, timeout_s), timeout_s)

    def stop(self) -> None:
        self._has_stopped = True
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _get(self, url: str, timeout_s: float) -> Answer:
        request = urllib.request.Request(url, headers={"accept": "application/json, application/problem+json"})
        try:
            with self._opener.open(request, timeout=timeout_s) as response:
                return Answer(response.status, _members(response.read(MAX_LOOK_UP_BYTES)))
        except urllib.error.HTTPError as refusal:
            with refusal:
                return Answer(refusal.code, _members(refusal.read(MAX_LOOK_UP_BYTES)))
        except OSError:
            raise
        except Exception as broken:
            # A server that speaks something else than HTTP: http.client has errors of its own for it.
            raise OSError(str(broken)) from broken


def _members(body: bytes) -> Mapping[str, Any]:
    try:
        return members_of(parse_json(body.decode()))
    except ValueError:
        return {}
