"""Makes this agent's envelopes: drafts them, seals them, and keeps those of sessions for receipts."""

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from .credentials.own_credential import OwnCredential
from .envelope_rules import check_envelope
from .errors import RelayError
from .frames import AckFrame
from .peers import Peers
from .pending_sends import SendDraft
from .read_envelope import read_envelope
from .receipts.session_records import SessionRecords
from .sealing.sealed_payload import is_sealed, plaintext_of, seal_payload
from .send_queue import SendQueue
from .signer import Signer
from .strict_json import parse_json

# The members of an envelope that differ from call to call: `type`, `to`, `task_id`, `payload`.
Content = Mapping[str, Any]


@dataclass(frozen=True)
class OwnEnvelopes:
    agent: str
    # Of the key that the agent began with.
    signer: Signer
    credential: OwnCredential | None
    send_queue: SendQueue
    sessions: SessionRecords
    peers: Peers

    def check(self, content: Content) -> None:
        """Raises `invalid_envelope` for fields that the relay would refuse. A payload is checked as it is signed."""
        check_envelope(content, self.agent)

    async def message(self, content: Content, seals: bool, timeout_s: float) -> AckFrame:
        """Raises RelayError."""
        self.check(content)
        if isinstance(content["payload"], dict) and is_sealed(content["payload"]):
            raise RelayError("invalid_envelope", "A payload of one member named sealed means another thing.")
        if seals and not self.signer.is_ed25519:
            raise RelayError("invalid_key", "A key of HMAC cannot seal.")
        envelope_id = str(uuid.uuid4())
        draft = self._sealed(content, envelope_id) if seals else self._draft(content, envelope_id)
        return (await self.send_queue.add(envelope_id, content["type"], content["to"], draft, timeout_s)).ack

    async def session(self, content: Content, timeout_s: float, not_before: int = 0) -> AckFrame:
        """An envelope of a session, which is kept once it is accepted. Raises RelayError. not_before: see `Signer.sign`."""
        self.check(content)
        envelope_id = str(uuid.uuid4())
        draft = self._draft(content, envelope_id)
        kind, to = content["type"], content["to"]
        acknowledged = await self.send_queue.add(envelope_id, kind, to, draft, timeout_s, not_before)
        envelope = read_envelope(parse_json(acknowledged.text))
        if envelope is not None and acknowledged.ack.session_id:
            own = self.credential
            credential = None if own is None else own.held_at(envelope["ts"], envelope["key_id"])
            self.sessions.keep(acknowledged.ack.session_id, envelope, credential)
        return acknowledged.ack

    async def decision(
        self, kind: Literal["approve", "reject"], session_id: str, to: str, reason: str | None, timeout_s: float
    ) -> AckFrame:
        """On the request that this agent got, where it is clear which. Raises RelayError."""
        request = self.sessions.request_of(session_id, to)
        digest, not_before = (None, 0) if request is None else (request.digest, request.ts)
        payload = present(session_id=session_id, request_sha256=digest, reason=reason)
        return await self.session({"type": f"session.{kind}", "to": to, "payload": payload}, timeout_s, not_before)

    def _draft(self, content: Content, envelope_id: str) -> str:
        return self.signer.draft({**content, "id": envelope_id, "from": self.agent})

    def _sealed(self, content: Content, envelope_id: str) -> SendDraft:
        """Sealed when it goes out: there may be no connection yet, and the recipient may get another key meanwhile."""
        plaintext = plaintext_of(content["payload"])
        needed_at = time.monotonic()
        surroundings = {**content, "id": envelope_id, "from": self.agent}

        async def draft() -> str:
            key = await self.peers.sealing_key_of(content["to"], needed_at)
            return self._draft({**content, "payload": seal_payload(plaintext, surroundings, key)}, envelope_id)

        return draft


def present(**members: Any) -> dict[str, Any]:
    """The members that are given."""
    return {name: value for name, value in members.items() if value is not None}
