"""Asks a callback of the caller."""

import asyncio
from collections.abc import Awaitable, Callable

from ..errors import RelayError
from ..given import CredentialSource, CredentialWithKeys
from ..limits import RENEWAL_ANSWER_WITHIN_S
from ..within import within


async def answer_of(source: CredentialSource) -> CredentialWithKeys:
    """What the source gives.

    Raises `invalid_credential` when the callback fails, and `timeout` when it does not answer: nothing waits for one
    that hangs, not even for the end of one that cannot be cancelled.
    """
    if isinstance(source, str):
        return CredentialWithKeys(source)
    try:
        given = await within(_called(source), timeout_s=RENEWAL_ANSWER_WITHIN_S)
    except asyncio.TimeoutError:
        raise _too_late() from None
    if isinstance(given, RelayError):
        raise given
    return given


async def _called(callback: Callable[[], Awaitable[str | CredentialWithKeys]]) -> CredentialWithKeys | RelayError:
    """Returns why the callback failed: `asyncio.run` prints what a task that it cancels raises."""
    try:
        given = await callback()
    except RelayError as failure:
        return failure
    except (Exception, asyncio.CancelledError) as cause:
        broken = RelayError("invalid_credential", "The callback that gives the credential failed; see __cause__.")
        broken.__cause__ = cause
        return broken
    return given if isinstance(given, CredentialWithKeys) else CredentialWithKeys(given)


def _too_late() -> RelayError:
    return RelayError(
        "timeout",
        f"The callback that gives the credential did not answer within {RENEWAL_ANSWER_WITHIN_S:.0f} s.",
        "Let it answer or raise sooner. A connector that runs asks it again.",
    )
