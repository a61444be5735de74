"""The sessions of which something was kept last."""

from collections.abc import Iterator
from dataclasses import dataclass

from ..limits import MAX_SESSION_RECORD_BYTES, MAX_SESSION_RECORDS
from .receipt import Voucher


@dataclass(frozen=True)
class Kept:
    """An envelope of a session that this agent signed, or verified."""

    # Its signed_bytes: what a parsed envelope costs in memory, nobody can say.
    data: bytes
    # Of a request: what a decision on it carries.
    digest: str
    # What vouched for its key.
    voucher: Voucher | None


@dataclass(frozen=True)
class SessionRecord:
    requests: tuple[Kept, ...] = ()
    decisions: tuple[Kept, ...] = ()


class NewestSessions:
    """Bounded in number and in bytes."""

    def __init__(self) -> None:
        # By session id, the oldest first.
        self._records: dict[str, SessionRecord] = {}
        self._bytes = 0

    def get(self, session_id: str) -> SessionRecord | None:
        return self._records.get(session_id)

    def put(self, session_id: str, record: SessionRecord) -> None:
        """In place of what there is of the session. The oldest of the others make room."""
        self.delete(session_id)
        self._records[session_id] = record
        self._bytes += sum(_sizes_in(record))
        while len(self._records) > MAX_SESSION_RECORDS or self._bytes > MAX_SESSION_RECORD_BYTES:
            self.delete(next(iter(self._records)))

    def delete(self, session_id: str) -> None:
        record = self._records.pop(session_id, None)
        if record is not None:
            self._bytes -= sum(_sizes_in(record))


def _sizes_in(record: SessionRecord) -> Iterator[int]:
    for kept in (*record.requests, *record.decisions):
        yield len(kept.data) + (len(kept.voucher.token) if kept.voucher else 0)
