"""Requests and decisions of the newest sessions, for receipts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..credentials.read_credential import Credential
from ..limits import MAX_OF_A_KIND
from ..strict_json import parse_json
from ..types import Envelope
from .contract import Receipt
from .newest_sessions import Kept, NewestSessions, SessionRecord
from .receipt import Voucher, build_receipt, digest_of, is_unbound, signed_bytes

_DECISIONS = ("session.approve", "session.reject")


@dataclass(frozen=True)
class _Found:
    """An envelope as it was kept, parsed again."""

    envelope: Envelope
    digest: str
    voucher: Voucher | None


@dataclass(frozen=True)
class Decidable:
    """What a decision says of its request, and when that was signed, epoch milliseconds."""

    digest: str
    ts: int


class SessionRecords:
    """Only the relay says which session a request opened: several may claim one, so nothing takes another's place."""

    def __init__(self, agent: str) -> None:
        """agent: this one."""
        self._agent = agent
        # Those in which this agent signed something: whatever others send, it takes no room of theirs.
        self._own = NewestSessions()
        self._others = NewestSessions()

    def keep(self, session_id: str, envelope: Envelope, credential: Credential | None) -> None:
        """envelope: signed here or verified."""
        if envelope["type"] != "session.request" and envelope["type"] not in _DECISIONS:
            return
        record = self._record_of(session_id)
        of_its_kind = record.decisions if envelope["type"] in _DECISIONS else record.requests
        if len(of_its_kind) >= MAX_OF_A_KIND:
            return
        is_own = envelope["from"] == self._agent or self._own.get(session_id) is not None
        self._others.delete(session_id)
        (self._own if is_own else self._others).put(session_id, _with(record, envelope, credential))

    def request_of(self, session_id: str, requester: str) -> Decidable | None:
        """The request that this agent got from the requester; None when it is unclear which."""
        requests = _found(self._record_of(session_id).requests)
        of_requester = [request for request in requests if request.envelope["from"] == requester]
        if len(of_requester) != 1:
            return None
        return Decidable(of_requester[0].digest, of_requester[0].envelope["ts"])

    def receipt(self, session_id: str) -> Receipt:
        """Raises `receipt_incomplete`."""
        record = self._record_of(session_id)
        requests, decisions = _found(record.requests), _found(record.decisions)
        pairs = _pairs_of(requests, decisions, _is_on) or _pairs_of(requests, decisions, _is_unbound_on)
        request, decision = pairs[0] if pairs else _unpaired(requests, decisions)
        vouchers = [found.voucher for found in (request, decision) if found is not None and found.voucher]
        return build_receipt(_envelope_of(request), _envelope_of(decision), vouchers)

    def _record_of(self, session_id: str) -> SessionRecord:
        return self._own.get(session_id) or self._others.get(session_id) or SessionRecord()


def _with(record: SessionRecord, envelope: Envelope, credential: Credential | None) -> SessionRecord:
    data = signed_bytes(envelope)
    voucher = None if credential is None else Voucher(credential.agent, credential.key_id, credential.token)
    kept = Kept(data, digest_of(data), voucher)
    if envelope["type"] in _DECISIONS:
        return replace(record, decisions=(*record.decisions, kept))
    return replace(record, requests=(*record.requests, kept))


def _found(kept: Sequence[Kept]) -> list[_Found]:
    return [_Found(parse_json(one.data.decode()), one.digest, one.voucher) for one in kept]


def _envelope_of(found: _Found | None) -> Envelope | None:
    return None if found is None else found.envelope


def _unpaired(requests: Sequence[_Found], decisions: Sequence[_Found]) -> tuple[_Found | None, _Found | None]:
    """A request that nothing decides, or a decision whose request this agent never had."""
    if requests:
        return requests[0], None
    return None, decisions[0] if decisions else None


def _pairs_of(
    requests: Sequence[_Found], decisions: Sequence[_Found], is_on: Callable[[_Found, _Found], bool]
) -> list[tuple[_Found, _Found]]:
    return [(request, one) for request in requests for one in decisions if is_on(one, request)]


def _is_on(decision: _Found, request: _Found) -> bool:
    """Its target made the decision, for its requester, on this very request."""
    return _are_parties(decision, request) and decision.envelope["payload"].get("request_sha256") == request.digest


def _is_unbound_on(decision: _Found, request: _Found) -> bool:
    """It may be on the request, and does not say so."""
    return _are_parties(decision, request) and is_unbound(decision.envelope)


def _are_parties(decision: _Found, request: _Found) -> bool:
    made, on = decision.envelope, request.envelope
    return made["from"] == on.get("to") and made.get("to") == on["from"]
