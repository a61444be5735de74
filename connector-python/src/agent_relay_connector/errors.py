"""The error of this package."""

from collections.abc import Sequence
from typing import Literal

from .error_catalogue import CONNECTOR_ERRORS, FINAL_CLOSES, RELAY_ERRORS, Retry

Outcome = Literal["refused", "unknown"]


class RelayError(Exception):
    """Every error that this package raises or reports. Its texts contain no key, signature or payload.

    code: stable, snake_case. hint: what to do. retry: `never`, `fix` or `later`, as the relay says it, else the
    catalogue. outcome: `refused`: it did not happen; `unknown`: the envelope went out, and may have been accepted and
    delivered. retry_after: seconds after which to try again. close_code: of the websocket, where a close is the
    reason. missing: parts of a receipt, of `receipt_incomplete`.
    """

    def __init__(
        self,
        code: str,
        message: str | None = None,
        hint: str | None = None,
        *,
        retry: Retry | None = None,
        outcome: Outcome = "refused",
        retry_after: float | None = None,
        close_code: int | None = None,
        envelope_id: str | None = None,
        missing: Sequence[str] = (),
    ) -> None:
        entry = RELAY_ERRORS.get(code) or CONNECTOR_ERRORS[code]
        self.code = code
        self.message = message or entry.message
        self.hint = hint or entry.hint
        self.retry: Retry = retry or entry.retry
        self.outcome: Outcome = outcome
        self.retry_after = retry_after
        self.close_code = close_code
        self.envelope_id = envelope_id
        self.missing = tuple(missing)
        super().__init__(f"{code}: {self.message} {self.hint}")

    def for_call(self, outcome: Outcome, envelope_id: str | None) -> "RelayError":
        """The same, as the end of one call."""
        return RelayError(
            self.code,
            self.message,
            self.hint,
            retry=self.retry,
            outcome=outcome,
            retry_after=self.retry_after,
            close_code=self.close_code,
            envelope_id=envelope_id,
        )


def final_close(close_code: int) -> RelayError | None:
    """The error of a close after which a connector does not reconnect; None for every other close."""
    code = FINAL_CLOSES.get(close_code)
    return None if code is None else RelayError(code, close_code=close_code)
