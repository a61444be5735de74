"""What is different until the agent is registered for the first time."""

import asyncio
import time
from collections.abc import Callable

from .backoff import growing_s, jittered_s
from .background import Background
from .check_online import CheckOnline
from .errors import RelayError
from .iso_time import epoch_ms_of
from .limits import (
    OWN_LOOK_AGAIN_S,
    OWN_LOOKS,
    PRESENCE_CAP_S,
    REFUSED_UPGRADE_S,
    RETRY_AFTER_CAP_S,
    UNKNOWN_KEY_PRESENTED_S,
)
from .network_errors import is_refused_by_proxy, is_refused_upgrade
from .self_test import SelfTest
from .types import Presence

_SHORT_HINT = "Give the start more time, or see whether a relay answers there."


class FirstStart:
    def __init__(
        self,
        agent: str,
        check_online: CheckOnline,
        self_test: SelfTest,
        take_over: bool,
        background: Background,
        failed: Callable[[RelayError], None],
        ended: Callable[[RelayError], None],
    ) -> None:
        """failed: an attempt failed. ended: no further attempt may follow."""
        self._agent = agent
        self._check_online = check_online
        self._self_test = self_test
        self._takes_over = take_over
        self._background = background
        self._failed = failed
        self._ended = ended
        # However long something else answers in the relay's place.
        self.is_endless = False
        self._is_over = False
        # Why nothing may be taken over: found out once, whatever becomes of the connection that waits for it.
        self._looking: asyncio.Task[RelayError | None] | None = None
        self._unknown_since: float | None = None
        # Since when something else answers, without an answer of the relay in between.
        self._strange_since: float | None = None
        # The same of the upgrade.
        self._refused_since: float | None = None
        # What may pass by itself, of the last register.
        self._passing: RelayError | None = None
        self._failure: RelayError | None = None

    @property
    def failure(self) -> RelayError | None:
        """Why the last attempt failed, since the agent was registered last."""
        return self._failure

    async def before_register(self, register: Callable[[], str]) -> None:
        """Before the first register, which would end the connection of whoever has the agent.

        Later ones are this connector's own reconnects: what is online then may be its own connection. Raises
        `superseded_elsewhere`, `not_a_relay`, or why the relay would not take its key: whoever has not the agent's could
        take nothing over. register: makes the text of the register.
        """
        self._refused_since = None
        if self._takes_over:
            return
        if self._looking is None:
            self._looking = self._background.spawn(self._find_bar())
        bar = await asyncio.shield(self._looking)
        if bar is None:
            return
        if bar.code != "superseded_elsewhere":
            raise bar
        refused = await self._self_test.key_refusal(register())
        raise refused or bar

    def may_pass(self, error: RelayError) -> bool:
        """Whether a refusal may pass by itself: the relay reads its keys file again within seconds of a change.

        Source: docs/protocol.md#keys.
        """
        if self._is_over or not _is_of_what_is_not_known(error):
            return False
        if self._unknown_since is None:
            self._unknown_since = time.monotonic()
        if time.monotonic() - self._unknown_since >= UNKNOWN_KEY_PRESENTED_S:
            return False
        self._passing = error
        self._tell(error)
        return True

    def presents_again(self, error: RelayError) -> bool:
        """Whether the same is to be presented again after this refusal."""
        return error is self._passing

    def is_ended_by(self, error: RelayError) -> bool:
        """Whether an attempt that reached no relay for this reason ends the start: no further one can heal it."""
        if self._is_over or error.retry != "fix":
            return False
        return not self._may_yet_upgrade(error) and not (self.is_endless and is_refused_by_proxy(error))

    def unreachable(self, error: RelayError) -> None:
        """Says why no relay was reached, at every attempt of the connector's life."""
        self._tell(error)

    def _may_yet_upgrade(self, error: RelayError) -> bool:
        if not is_refused_upgrade(error):
            return False
        if self._refused_since is None:
            self._refused_since = time.monotonic()
        return self.is_endless or time.monotonic() - self._refused_since < REFUSED_UPGRADE_S

    def time_is_over(self) -> None:
        """Says why the last attempt failed."""
        cause = self._failure
        why = f"The relay at {self._check_online.base} has not answered." if cause is None else cause.message
        message = f"The time for the start is over. {why}"
        error = RelayError("timeout", message, _SHORT_HINT if cause is None else cause.hint)
        error.__cause__ = cause
        self._ended(error)

    def succeeded(self) -> None:
        """It is registered."""
        self._is_over = True
        self._failure = None

    def stop(self) -> None:
        """Looks no more: what a look-up ends with now is no answer of the relay."""
        if self._looking is not None:
            self._looking.cancel()

    def _tell(self, error: RelayError) -> None:
        self._failure = error
        self._failed(error)

    async def _find_bar(self) -> RelayError | None:
        """Asks again before it says that another connection has the agent: the relay may not have seen yet that the
        socket of a killed process is gone.

        What cannot be told for the moment is asked again until the start ends, however long the relay asks to wait. What
        nobody tells for a while is a bar, as at an address that has the websocket alone. An edge that is being changed may
        answer for its relay for a moment.
        """
        times_online = times_untold = 0
        while True:
            try:
                presence = await self._check_online.presence_of(self._agent)
            except RelayError as error:
                if not self._may_yet_tell(error):
                    return error
                self._tell(error)
                await asyncio.sleep(_until_next_look_s(error, times_untold))
                times_untold += 1
                continue
            self._strange_since = None
            if presence.status != "online":
                return None
            times_online += 1
            if times_online == OWN_LOOKS:
                return _elsewhere(presence)
            await asyncio.sleep(OWN_LOOK_AGAIN_S)

    def _may_yet_tell(self, error: RelayError) -> bool:
        """Whether another look may be answered otherwise. What is no relay counts once it has been there for a while."""
        if error.code == "not_a_relay":
            if self._strange_since is None:
                self._strange_since = time.monotonic()
            return self.is_endless or time.monotonic() - self._strange_since < UNKNOWN_KEY_PRESENTED_S
        if error.code != "unreachable":
            self._strange_since = None
        return error.retry == "later" or (self.is_endless and is_refused_by_proxy(error))


def _until_next_look_s(error: RelayError, times_untold: int) -> float:
    """As long as an answer asked for, of which a relay's own may be longer than an edge's; without one a wait that grows."""
    if error.retry_after is None:
        return growing_s(times_untold, PRESENCE_CAP_S)
    return jittered_s(error.retry_after, max(error.retry_after, RETRY_AFTER_CAP_S))


def _is_of_what_is_not_known(refusal: RelayError) -> bool:
    """Of a key, or of the issuer of a credential: its first word is the reason."""
    is_of_issuer = refusal.code == "invalid_credential" and refusal.message.startswith("unknown_issuer")
    return refusal.code == "unknown_key" or is_of_issuer


def _elsewhere(presence: Presence) -> RelayError:
    """Another connection has the agent."""
    since = presence.details.get("online_since_iso")
    if epoch_ms_of(since) is None:
        return RelayError("superseded_elsewhere")
    message = f"The agent has been online over another connection since {since}, and this start would end that."
    return RelayError("superseded_elsewhere", message)
