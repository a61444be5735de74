"""The credential that this agent presents, renewed in time where its source is asked for it."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..backoff import backoff_s
from ..background import Background
from ..clock import Clock
from ..errors import RelayError
from ..given import CredentialSource, CredentialWithKeys
from ..limits import RENEWAL_CAP_S, RENEWAL_LOOKS_EVERY_S
from ..presence import Registration
from ..sealing.own_sealing_keys import OwnSealingKeys
from ..signer import Signer
from ..spacing import Spacing
from .answer_of import answer_of
from .held_credentials import Held, HeldCredentials
from .read_credential import Credential, read_credential


@dataclass(frozen=True)
class OwnCredentialOptions:
    source: CredentialSource
    agent: str
    clock: Clock
    # What signs, unless a credential comes with another key.
    signer: Signer
    sealing_keys: OwnSealingKeys
    # True while envelopes under this key have no answer: they are sent again under it, never signed anew.
    needs: Callable[[str], bool]
    # There is another one to present.
    renewed: Callable[[], None]
    # The source failed, or gave what cannot be used; it is asked again.
    failed: Callable[[RelayError], None]
    background: Background


class OwnCredential:
    def __init__(self, options: OwnCredentialOptions) -> None:
        self._options = options
        self._clock = options.clock
        self._signer = options.signer
        self._held = HeldCredentials(options.clock, options.needs)
        self._presented: str | None = None
        # When it is asked for the next, epoch milliseconds. Not by what the relay says the time is: it may lie.
        self._due_at = 0.0
        self._attempt = 0
        # Of the times that the source is asked, though it gives another one each time, and the relay takes none.
        self._spacing = Spacing(RENEWAL_CAP_S)
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[bool | None] | None = None
        self._has_stopped = False

    @property
    def is_renewable(self) -> bool:
        """False where the one token is all that there is."""
        return not isinstance(self._options.source, str)

    def registrations(self) -> Sequence[Registration]:
        """What a connection is to be registered with, in this order. There is one after `start`."""
        return self._held.registrations()

    def presented(self, registration: Registration) -> None:
        """A register with it goes out."""
        if registration.credential is not None:
            self._presented = registration.credential.token

    async def has_another(self) -> bool | None:
        """Whether there is another one than that of the last register; asks for it. None when nobody could tell."""
        if self._presented != self._held.present.credential.token:
            return True
        return None if self._too_soon_s() > 0 else await self.renew()

    def refused(self) -> None:
        """The relay does not take the present one: asks for another soon."""
        if self.is_renewable:
            self._ask_again_later()

    def held_at(self, ts: int, key_id: str) -> Credential | None:
        """The one that vouches for what this agent signed with the key at that time."""
        return self._held.at(ts, key_id)

    async def start(self) -> None:
        """Raises `invalid_credential` when there is none that can be used, `timeout` when the callback hangs."""
        self._take(await answer_of(self._options.source))
        if self.is_renewable:
            self._renew_later()

    def stop(self) -> None:
        self._has_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        if self._asking is not None:
            self._asking.cancel()

    async def renew(self) -> bool | None:
        """Asks for another one now, once for all who ask at the same time.

        False when there is none, None when nobody could tell.
        """
        if self._asking is None or self._asking.done():
            self._spacing.happens()
            self._asking = asyncio.create_task(self._renew())
        return await asyncio.shield(self._asking)

    async def _renew(self) -> bool | None:
        try:
            given = await answer_of(self._options.source)
            if self._has_stopped or given.credential == self._held.present.credential.token:
                return False
            if not self._take(given):
                return None
        except RelayError as error:
            self._options.failed(error)
            return None
        self._renew_later()
        return True

    def _take(self, given: CredentialWithKeys) -> bool:
        """False for one that has to wait: the relay would let a key go whose envelopes have no answer yet."""
        credential = read_credential(given.credential)
        if credential is None:
            raise RelayError("invalid_credential", "The credential is malformed.")
        if credential.agent != self._options.agent:
            raise RelayError("invalid_credential", "The credential is of another agent.")
        if not self._held.has_room_for(credential.key_id):
            return False
        signer = self._signer if given.key is None else Signer(given.key, self._clock)
        signer.take_id_of(credential)
        self._options.sealing_keys.take(given.sealing_keys, credential)
        self._signer = signer
        self._held.add(Held(signer, credential))
        return True

    def _renew_later(self) -> None:
        self._attempt = 0
        self._due_at = self._held.renewal_at()
        self._wait()

    def _ask_again_later(self) -> None:
        self._due_at = self._clock.bounded_now() + backoff_s(self._attempt, RENEWAL_CAP_S) * 1000
        self._attempt += 1
        self._wait()

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._has_stopped:
            return
        wait_s = max(self._too_soon_s(), (self._due_at - self._clock.bounded_now()) / 1000)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(min(wait_s, RENEWAL_LOOKS_EVERY_S), self._passed)

    def _too_soon_s(self) -> float:
        return self._spacing.left_s(self._held.renewal_apart_s())

    def _passed(self) -> None:
        self._options.background.spawn(self._look())

    async def _look(self) -> None:
        now = self._clock.bounded_now()
        if now < self._due_at or self._too_soon_s() > 0:
            self._wait()
        elif await self.renew():
            self._options.renewed()
        elif now < self._held.present.credential.expires_at:
            # After its end nothing holds the agent on the relay: whoever reconnects asks.
            self._ask_again_later()
