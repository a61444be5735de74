"""The credential that this agent presents, renewed in time where its source is asked for it."""

import asyncio
import random
from collections.abc import Callable

from ..backoff import backoff_s
from ..background import Background
from ..clock import Clock
from ..errors import RelayError
from ..limits import (
    RENEWAL_ANSWER_WITHIN_S,
    RENEWAL_CAP_S,
    RENEWAL_EARLIEST,
    RENEWAL_LATEST,
    RENEWAL_LOOKS_EVERY_S,
)
from ..types import CredentialSource
from .read_credential import Credential, read_credential


class OwnCredential:
    def __init__(
        self,
        source: CredentialSource,
        agent: str,
        clock: Clock,
        accept: Callable[[Credential], None],
        renewed: Callable[[], None],
        failed: Callable[[RelayError], None],
        background: Background,
    ) -> None:
        """accept: raises RelayError for a credential that this agent's key cannot use. renewed: there is another one to
        present. failed: the source failed, or gave what cannot be used; it is asked again."""
        self._source = source
        self._agent = agent
        self._clock = clock
        self._accept = accept
        self._renewed = renewed
        self._failed = failed
        self._background = background
        # The present one, and the one before it: envelopes that it signed may still be on their way.
        self._held: list[Credential] = []
        self._presented: str | None = None
        # When it is asked for the next, by the relay's clock, epoch milliseconds.
        self._due_at = 0.0
        self._attempt = 0
        self._timer: asyncio.TimerHandle | None = None
        self._asking: asyncio.Task[bool] | None = None
        self._has_stopped = False

    @property
    def is_renewable(self) -> bool:
        """False where the one token is all that there is."""
        return not isinstance(self._source, str)

    def present(self) -> str:
        """The present token, for a register. There is one after `start`."""
        self._presented = self._held[0].token
        return self._presented

    async def has_another(self) -> bool:
        """Whether there is another one than that of the last register; asks for it."""
        return self._presented != self._held[0].token or await self.renew()

    def refused(self) -> None:
        """The relay does not take the present one: asks for another soon."""
        if self.is_renewable:
            self._ask_again_later()

    def held_at(self, ts: int) -> Credential:
        """The one that vouches for what this agent signed at that time."""
        held = (one for one in self._held if one.issued_at <= ts < one.expires_at)
        return next(held, self._held[0])

    async def start(self) -> None:
        """Raises `invalid_credential` when there is none that can be used."""
        self._take(await self._ask())
        if self.is_renewable:
            self._renew_later()

    def stop(self) -> None:
        self._has_stopped = True
        if self._timer is not None:
            self._timer.cancel()

    async def renew(self) -> bool:
        """Asks for another one now, once for all who ask at the same time. False when there is none."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._renew())
        try:
            return await asyncio.shield(self._asking)
        finally:
            if self._asking is not None and self._asking.done():
                self._asking = None

    async def _renew(self) -> bool:
        try:
            token = await self._ask()
            if self._has_stopped or token == self._held[0].token:
                return False
            self._take(token)
        except RelayError as error:
            self._failed(error)
            return False
        self._renew_later()
        return True

    async def _ask(self) -> object:
        if isinstance(self._source, str):
            return self._source
        try:
            return await asyncio.wait_for(self._source(), RENEWAL_ANSWER_WITHIN_S)
        except RelayError:
            raise
        except asyncio.TimeoutError:
            raise RelayError("timeout", "The callback that gives the credential did not answer in time.") from None
        except Exception as cause:
            message = "The callback that gives the credential failed; see __cause__."
            raise RelayError("invalid_credential", message) from cause

    def _take(self, token: object) -> None:
        credential = read_credential(token)
        if credential is None:
            raise RelayError("invalid_credential", "The credential is malformed.")
        if credential.agent != self._agent:
            raise RelayError("invalid_credential", "The credential is of another agent.")
        self._accept(credential)
        self._held = [credential, *self._held][:2]

    def _renew_later(self) -> None:
        """At a random point of its life: agents whose credentials were issued together are not renewed together."""
        present = self._held[0]
        share = random.uniform(RENEWAL_EARLIEST, RENEWAL_LATEST)
        self._attempt = 0
        self._due_at = present.issued_at + share * (present.expires_at - present.issued_at)
        self._wait()

    def _ask_again_later(self) -> None:
        self._due_at = self._clock.now() + backoff_s(self._attempt, RENEWAL_CAP_S) * 1000
        self._attempt += 1
        self._wait()

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._has_stopped:
            return
        wait_s = max(0.0, (self._due_at - self._clock.now()) / 1000)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(min(wait_s, RENEWAL_LOOKS_EVERY_S), self._passed)

    def _passed(self) -> None:
        self._background.spawn(self._look())

    async def _look(self) -> None:
        if self._clock.now() < self._due_at:
            self._wait()
        elif await self.renew():
            self._renewed()
        elif self._clock.now() < self._held[0].expires_at:
            # After its end nothing holds the agent on the relay: whoever reconnects asks.
            self._ask_again_later()
