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
        return await within(_called(source), timeout_s=RENEWAL_ANSWER_WITHIN_S)
    except asyncio.TimeoutError:
        raise _too_late() from None


async def _called(callback: Callable[[], Awaitable[str | CredentialWithKeys]]) -> CredentialWithKeys:
    try:
        given = await callback()
    except RelayError:
        raise
    except (Exception, asyncio.CancelledError) as cause:
        message = "The callback that gives the credential failed; see __cause__."
        raise RelayError("invalid_credential", message) from cause
    return given if isinstance(given, CredentialWithKeys) else CredentialWithKeys(given)


def _too_late() -> RelayError:
    return RelayError(
        "timeout",
        f"The callback that gives the credential did not answer within {RENEWAL_ANSWER_WITHIN_S:.0f} s.",
        "Let it answer or raise sooner. A connector that runs asks it again.",
    )
