"""The X25519 keys of this agent."""

from collections.abc import Sequence

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from ..clock import Clock
from ..credentials.public_jwk import thumbprint_of
from ..credentials.read_credential import Credential
from ..errors import RelayError
from ..given import SealingKey
from ..limits import SEALING_KEY_KEPT_MS
from .sealing_keys import ReadSealingKey, SealingKeys


class OwnSealingKeys:
    """Those given last, and those before them for as long as something may be on its way that was sealed to them.

    Source: docs/protocol.md#sealed-payloads.
    """

    def __init__(self, clock: Clock, given: Sequence[str | SealingKey]) -> None:
        """Raises `invalid_key`."""
        self._clock = clock
        self._given = SealingKeys(given)
        # Given before, and not any more; by thumbprint.
        self._former: dict[str, ReadSealingKey] = {}
        # Until when something may come that is sealed to the key of a credential, by thumbprint.
        self._open_until: dict[str, float] = {}

    def get(self, kid: str) -> X25519PrivateKey | None:
        """kid: thumbprint of the public key."""
        given = self._given.get(kid)
        if given is not None:
            return given.private if self._clock.bounded_now() < given.until else None
        former = self._former.get(kid)
        return former.private if former is not None and self._is_needed(kid) else None

    def take(self, given: Sequence[str | SealingKey] | None, credential: Credential) -> None:
        """Takes over the keys that come with a credential, or keeps those that it has.

        Raises `invalid_key`, and `invalid_credential` when others would seal to a key that this agent does not have;
        nothing has changed then.
        """
        keys = self._given if given is None else SealingKeys(given)
        public_key = credential.sealing_key
        kid = None if public_key is None else thumbprint_of(public_key, "X25519")
        if kid is not None and keys and kid not in keys:
            raise _not_held()
        self._former.update(self._given)
        self._given = keys
        if kid is not None:
            kept_until = credential.expires_at + SEALING_KEY_KEPT_MS
            self._open_until[kid] = max(kept_until, self._open_until.get(kid, 0))
        self._forget_ended()

    def _is_needed(self, kid: str) -> bool:
        return self._open_until.get(kid, float("-inf")) > self._clock.bounded_now()

    def _forget_ended(self) -> None:
        for kid in {*self._former, *self._open_until}:
            if not self._is_needed(kid):
                self._former.pop(kid, None)
                self._open_until.pop(kid, None)


def _not_held() -> RelayError:
    return RelayError(
        "invalid_credential",
        "The credential has an X25519 key in enc that is not among the sealing keys.",
        "Give the private half in sealing_keys, or with the credential; or have one issued without enc.",
    )
