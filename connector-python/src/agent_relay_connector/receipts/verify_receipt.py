"""Checks receipts."""

from collections.abc import Sequence

from ..canonical import is_signed_by
from ..credentials.contract import CredentialReason
from ..credentials.issuers import Issuers
from ..credentials.read_credential import Credential, read_credential
from ..file_text import is_utf_16
from ..limits import MAX_CLOCK_SKEW_MS
from ..types import Envelope, JsonObject
from .contract import Receipt, ReceiptFacts, ReceiptProblem, ReceiptVerdict
from .read_receipt import read_receipt, ttl_ms_of
from .receipt import is_of, request_digest
from .session_of import is_session_of


def verify_receipt(receipt: str | bytes, issuers: Sequence[JsonObject]) -> ReceiptVerdict:
    """Checks a receipt by the records of issuers alone: no relay is asked. Raises `invalid_issuer`.

    It shows that both keys signed; not when, not that a relay accepted it, and not that there is no other decision.
    receipt: its JSON text or bytes in UTF-8, with a byte order mark or without.
    """
    known = Issuers(issuers)
    read = read_receipt(receipt)
    if read is None:
        is_other_text = isinstance(receipt, (bytes, bytearray)) and is_utf_16(receipt)
        return ReceiptVerdict(problem=ReceiptProblem("malformed", reason="utf_16" if is_other_text else None))
    problem = _unfitting_in(read)
    if problem is not None:
        return ReceiptVerdict(problem=problem)
    tokens = [read_credential(token) for token in read["credentials"]]
    credentials = [credential for credential in tokens if credential is not None]
    if len(credentials) < len(tokens):
        return _invalid("malformed")
    parts = (("request", read["request"]), ("decision", read["decision"]))
    vouching = []
    for part, envelope in parts:
        found = _vouching_in(credentials, envelope, known)
        if not isinstance(found, Credential):
            return ReceiptVerdict(problem=ReceiptProblem("credential", part, found))  # type: ignore[arg-type]
        if not is_signed_by(found.key, envelope):
            return ReceiptVerdict(problem=ReceiptProblem("signature", part))  # type: ignore[arg-type]
        vouching.append(found)
    return ReceiptVerdict(facts=_facts(read, [one for one in vouching if known.is_revoked(one)]))


def _unfitting_in(receipt: Receipt) -> ReceiptProblem | None:
    """How the two envelopes do not belong together."""
    request, decision = receipt["request"], receipt["decision"]
    are_parties = decision["from"] == request["to"] and decision["to"] == request["from"]
    if not are_parties or request["from"] == request["to"]:
        return ReceiptProblem("parties")
    digest = request_digest(request)
    if decision["payload"]["request_sha256"] != digest:
        return ReceiptProblem("digest")
    if not is_session_of(decision["payload"]["session_id"], digest):
        return ReceiptProblem("session")
    if decision["ts"] < request["ts"] - MAX_CLOCK_SKEW_MS:
        return ReceiptProblem("time", reason="before_request")
    is_late = decision["ts"] > request["ts"] + (ttl_ms_of(request) or 0)
    return ReceiptProblem("time", reason="after_end") if is_late else None


def _vouching_in(
    credentials: Sequence[Credential], envelope: Envelope, issuers: Issuers
) -> Credential | CredentialReason:
    """The credential that held for the envelope's key when it was signed, or why none did."""
    reason: CredentialReason = "key_mismatch"
    for credential in credentials:
        if not is_of(credential, envelope):
            continue
        problem = issuers.problem_at(credential, envelope["ts"])
        if problem is None:
            return credential
        reason = problem
    return reason


def _facts(receipt: Receipt, revoked: Sequence[Credential]) -> ReceiptFacts:
    request, decision = receipt["request"], receipt["decision"]
    return ReceiptFacts(
        session_id=decision["payload"]["session_id"],
        requester=request["from"],
        target=decision["from"],
        decision="approved" if decision["type"] == "session.approve" else "rejected",
        requested_at=request["ts"],
        decided_at=decision["ts"],
        revoked=tuple(revoked),
    )


def _invalid(code: str) -> ReceiptVerdict:
    return ReceiptVerdict(problem=ReceiptProblem(code))  # type: ignore[arg-type]
