"""The keys that the relay's signing manifest names: of its gateways, and of the issuers that it accepts."""

import asyncio
import time
from contextlib import suppress

from .background import Background
from .credentials.issuers import Issuers
from .credentials.read_credential import Credential
from .errors import RelayError
from .gateway_keys import read_gateway_keys
from .http import HttpClient
from .keys import VerifyKey
from .limits import GATEWAY_KEYS_KEPT_S, LOOK_UP_TIMEOUT_S, LOOK_UP_WAIT_S, MANIFEST_AGAIN_AFTER_S


class RelayManifest:
    def __init__(self, base: str, http: HttpClient, background: Background) -> None:
        """base: address of the relay, without a slash at its end."""
        self._url = f"{base}/.well-known/signing-manifest.json"
        self._http = http
        self._background = background
        self._gateway_keys: dict[str, VerifyKey] = {}
        self._issuers = Issuers([])
        self._reading: asyncio.Task[None] | None = None
        self._read_at = float("-inf")

    async def gateway_key(self, key_id: str) -> VerifyKey | None:
        """None when the manifest does not have the key, or does not say so in time. Never raises."""
        is_old = time.monotonic() - self._read_at >= GATEWAY_KEYS_KEPT_S
        if is_old or key_id not in self._gateway_keys:
            await self._refresh()
        return self._gateway_keys.get(key_id)

    async def issuers_for(self, credential: Credential) -> Issuers:
        """Its issuers, read again when none of them has the key that the credential is signed with. Never raises."""
        if not self._issuers.knows_key_of(credential):
            await self._refresh()
        return self._issuers

    async def _refresh(self) -> None:
        """Unknown keys come from others: at most one request each interval, however many there are."""
        if self._reading is None and time.monotonic() - self._read_at >= MANIFEST_AGAIN_AFTER_S:
            self._read_at = time.monotonic()
            self._reading = self._background.spawn(self._read())
        if self._reading is not None:
            left_s = LOOK_UP_WAIT_S - (time.monotonic() - self._read_at)
            await asyncio.wait([self._reading], timeout=max(0.0, left_s))

    async def _read(self) -> None:
        """What cannot be read changes nothing; a key that is not known asks again after the interval."""
        try:
            with suppress(OSError, asyncio.TimeoutError, RelayError):
                answer = await self._http.get(self._url, LOOK_UP_TIMEOUT_S)
                if answer.status != 200:
                    return
                self._gateway_keys = read_gateway_keys(answer.members.get("gateway_keys"))
                issuers = answer.members.get("issuers")
                self._issuers = Issuers(issuers if isinstance(issuers, list) else [])
        finally:
            self._reading = None
