"""The credentials that this agent may have to present."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..clock import Clock
from ..limits import RENEWAL_EARLIEST, RENEWAL_LATEST
from ..presence import Registration
from .read_credential import Credential


@dataclass(frozen=True, eq=False)
class Held(Registration):
    """A credential, and what signs under it."""

    credential: Credential


class HeldCredentials:
    """The present one, and those before it whose envelopes may still be on their way."""

    def __init__(self, clock: Clock, needs: Callable[[str], bool]) -> None:
        """needs: true while envelopes under this key have no answer."""
        self._clock = clock
        self._needs = needs
        # The present one first.
        self._held: list[Held] = []

    @property
    def present(self) -> Held:
        """There is one after `add`."""
        return self._held[0]

    def add(self, held: Held) -> None:
        """From now on the present one. Of the others stay the one before it, and the last under the key before."""
        self._held.insert(0, held)
        former = self._former
        self._held = [each for n, each in enumerate(self._held) if n < 2 or each is former]

    def has_room_for(self, key_id: str) -> bool:
        """False for a third key, while the relay, which holds two, would let one go that is needed."""
        former = self._former
        if former is None or key_id in (former.signer.key_id, self.present.signer.key_id):
            return True
        return not self._is_needed(former)

    def registrations(self) -> Sequence[Registration]:
        """The key before the present one where its envelopes have to go out again, and the present one."""
        former = self._former
        return [former, self.present] if former is not None and self._is_needed(former) else [self.present]

    def at(self, ts: int, key_id: str) -> Credential | None:
        of_key = [each.credential for each in self._held if each.credential.key_id == key_id]
        held = (each for each in of_key if each.issued_at <= ts < each.expires_at)
        return next(held, of_key[0] if of_key else None)

    def renewal_at(self) -> float:
        """At a random point of its life: agents whose credentials were issued together are not renewed together."""
        present = self.present.credential
        share = random.uniform(RENEWAL_EARLIEST, RENEWAL_LATEST)
        return present.issued_at + share * (present.expires_at - present.issued_at)

    def renewal_apart_s(self) -> float:
        """Seconds by which no two renewals have to be closer, since none is due sooner."""
        present = self.present.credential
        return RENEWAL_EARLIEST * (present.expires_at - present.issued_at) / 1000

    @property
    def _former(self) -> Held | None:
        """The newest under the key before the present one."""
        others = (each for each in self._held if each.signer.key_id != self.present.signer.key_id)
        return next(others, None)

    def _is_needed(self, held: Held) -> bool:
        return held.credential.expires_at > self._clock.now() and self._needs(held.signer.key_id)
