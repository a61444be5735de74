"""Receipts, and what they show. Source: docs/protocol.md#session-receipts."""

from dataclasses import dataclass
from typing import Literal, TypedDict

from ..credentials.contract import CredentialFacts, CredentialReason
from ..types import Envelope


class Receipt(TypedDict):
    """What shows that two agents agreed on a session, or did not: their envelopes, and who vouches for their keys."""

    version: Literal[1]
    request: Envelope
    decision: Envelope
    # Tokens.
    credentials: list[str]


@dataclass(frozen=True)
class ReceiptFacts:
    """Times are epoch milliseconds, by the signers' clocks."""

    session_id: str
    requester: str
    target: str
    decision: Literal["approved", "rejected"]
    requested_at: int
    decided_at: int
    # Credentials that held then and are revoked by now: their keys may have been in other hands already.
    revoked: tuple[CredentialFacts, ...]


@dataclass(frozen=True)
class ReceiptProblem:
    """Why a receipt shows nothing.

    `malformed`, with the reason `utf_16`: bytes of UTF-16.
    `parties`: the decision is not from the request's target to its requester. `digest`: it is on another request.
    `session`: it names another session than the one that the request opens. `time`: it was made before the request, by
    more than clocks may differ (5 minutes), or after its end: the `reason`. `credential`: none in it vouches for the key of `part`, for a `reason`. `signature`: of `part`.
    """

    code: Literal["malformed", "parties", "digest", "session", "time", "credential", "signature"]
    part: Literal["request", "decision"] | None = None
    reason: CredentialReason | Literal["utf_16", "before_request", "after_end"] | None = None


@dataclass(frozen=True)
class ReceiptVerdict:
    """Either `facts` or a `problem`."""

    facts: ReceiptFacts | None = None
    problem: ReceiptProblem | None = None

    @property
    def valid(self) -> bool:
        return self.facts is not None
