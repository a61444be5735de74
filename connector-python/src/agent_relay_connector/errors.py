"""The error of this package."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from .error_catalogue import CONNECTOR_ERRORS, FINAL_CLOSES, RELAY_ERRORS, Retry

Outcome = Literal["refused", "unknown"]


@dataclass(frozen=True)
class FieldError:
    """A field of an envelope, by the protocol's name, and what is wrong with it: `to`, `must be …`."""

    field: str
    message: str


class RelayError(Exception):
    """Every error that this package raises or reports. Its texts contain no key, signature or payload.

    code: stable, snake_case. hint: what to do. retry: `never`, `fix` or `later`, as the relay says it, else the
    catalogue. outcome: `refused`: it did not happen; `unknown`: the envelope went out, and may have been accepted and
    delivered. retry_after: seconds after which to try again. close_code: of the websocket, where a close is the
    reason. missing: parts of a receipt, of `receipt_incomplete`. errors: each field of the envelope that is wrong, of
    `invalid_envelope`.
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
        errors: Sequence[FieldError] = (),
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
        self.errors = tuple(errors)
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
            errors=self.errors,
        )


def final_close(close_code: int) -> RelayError | None:
    """The error of a close after which a connector does not reconnect; None for every other close."""
    code = FINAL_CLOSES.get(close_code)
    return None if code is None else RelayError(code, close_code=close_code)


def with_fields(sentence: str, errors: Sequence[FieldError]) -> str:
    """One sentence that also says which fields are wrong, and how, where it does not already."""
    unsaid = [error for error in errors if error.message not in sentence]
    if not unsaid:
        return sentence
    fields = "; ".join(f"{error.field} {error.message}" for error in unsaid)
    return f"{sentence.removesuffix('.')}: {fields}."
