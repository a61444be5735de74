"""Requests and decisions of the newest sessions, for receipts."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ..credentials.read_credential import Credential
from ..limits import MAX_OF_A_KIND, MAX_SESSION_RECORDS
from ..types import Envelope
from .contract import Receipt
from .receipt import build_receipt, is_unbound, request_digest

_DECISIONS = ("session.approve", "session.reject")


@dataclass(frozen=True)
class _Kept:
    """An envelope of a session that this agent signed, or verified."""

    envelope: Envelope
    # Of a request: what a decision on it carries.
    digest: str
    # What vouched for its key.
    credential: Credential | None


@dataclass(frozen=True)
class _Record:
    requests: list[_Kept] = field(default_factory=list)
    decisions: list[_Kept] = field(default_factory=list)


class SessionRecords:
    """Only the relay says which session a request opened: several may claim one, so nothing takes another's place."""

    def __init__(self) -> None:
        # By session id, the oldest first.
        self._records: dict[str, _Record] = {}

    def keep(self, session_id: str, envelope: Envelope, credential: Credential | None) -> None:
        """envelope: `session.*`, signed here or verified."""
        record = self._record_of(session_id)
        if envelope["type"] == "session.request":
            kept = record.requests
        elif envelope["type"] in _DECISIONS:
            kept = record.decisions
        else:
            return
        if len(kept) < MAX_OF_A_KIND:
            kept.append(_Kept(envelope, request_digest(envelope), credential))

    def digest_of(self, session_id: str, requester: str) -> str | None:
        """What a decision says of the request that this agent got from the requester; None when it is unclear which."""
        record = self._records.get(session_id) or _Record()
        digests = [kept.digest for kept in record.requests if kept.envelope["from"] == requester]
        return digests[0] if len(digests) == 1 else None

    def receipt(self, session_id: str) -> Receipt:
        """Raises `receipt_incomplete`."""
        record = self._records.get(session_id) or _Record()
        pairs = _pairs_of(record, _is_on) or _pairs_of(record, _is_unbound_on)
        request, decision = pairs[0] if pairs else _unpaired(record)
        credentials = [kept.credential for kept in (request, decision) if kept is not None and kept.credential]
        return build_receipt(_envelope_of(request), _envelope_of(decision), credentials)

    def _record_of(self, session_id: str) -> _Record:
        record = self._records.setdefault(session_id, _Record())
        if len(self._records) > MAX_SESSION_RECORDS:
            del self._records[next(iter(self._records))]
        return record


def _envelope_of(kept: _Kept | None) -> Envelope | None:
    return None if kept is None else kept.envelope


def _unpaired(record: _Record) -> tuple[_Kept | None, _Kept | None]:
    """A request that nothing decides, or a decision whose request this agent never had."""
    if record.requests:
        return record.requests[0], None
    return None, record.decisions[0] if record.decisions else None


def _pairs_of(record: _Record, is_on: Callable[[_Kept, _Kept], bool]) -> list[tuple[_Kept, _Kept]]:
    return [(request, one) for request in record.requests for one in record.decisions if is_on(one, request)]


def _is_on(decision: _Kept, request: _Kept) -> bool:
    """Its target made the decision, for its requester, on this very request."""
    return _are_parties(decision, request) and decision.envelope["payload"].get("request_sha256") == request.digest


def _is_unbound_on(decision: _Kept, request: _Kept) -> bool:
    """It may be on the request, and does not say so."""
    return _are_parties(decision, request) and is_unbound(decision.envelope)


def _are_parties(decision: _Kept, request: _Kept) -> bool:
    made, on = decision.envelope, request.envelope
    return made["from"] == on.get("to") and made.get("to") == on["from"]
