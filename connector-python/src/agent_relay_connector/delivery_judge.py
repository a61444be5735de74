"""Tells whether an envelope is for this agent, of now, new, and whose; and opens what is sealed."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .credentials.vouching import UNVERIFIED, Verdict
from .errors import RelayError
from .gateway_keys import GATEWAY_KEY_PREFIX
from .message_options import MessageOptions
from .receipts.receipt import request_digest
from .receipts.session_of import is_session_of
from .receipts.session_records import SessionRecords
from .replay_guard import ReplayGuard
from .sealing.sealed_payload import is_sealed, open_payload
from .sealing.own_sealing_keys import OwnSealingKeys
from .sender_verifier import SenderVerifier
from .session_id import session_id_of
from .types import Accepted, Delivery, Envelope, JsonObject

Replier = Callable[[Delivery, JsonObject, MessageOptions], Awaitable[Accepted]]


@dataclass(frozen=True)
class IncomingEnvelope:
    """An envelope that a relay says is for this agent."""

    envelope: Envelope
    # What the relay says.
    session_id: str | None
    # Epoch milliseconds, by this machine's clock.
    received_at_ms: int


@dataclass(frozen=True)
class DeliveryJudge:
    agent: str
    verifier: SenderVerifier
    replay_guard: ReplayGuard
    require_verified: bool
    sealing_keys: OwnSealingKeys
    sessions: SessionRecords
    replier: Replier

    async def judge(self, incoming: IncomingEnvelope) -> Delivery | None:
        """The delivery; None for a repeat. Those of one sender one after the other.

        Raises RelayError: why it is dropped.
        """
        envelope, guard = incoming.envelope, self.replay_guard
        if envelope.get("to") != self.agent:
            raise _dropped("misdirected_delivery", envelope)
        if guard.is_reused(envelope):
            raise _dropped("reused_id", envelope)
        if guard.is_repeat(envelope):
            return None
        can_judge = guard.can_judge
        if guard.is_stale(envelope):
            raise _dropped("stale_delivery" if can_judge else "clock_untrusted", envelope)
        verdict = await self._verdict(envelope, can_judge)
        opened = self._opened(envelope, verdict)
        session_id = _session_of(envelope, incoming.session_id)
        if not _can_be_in(session_id, envelope):
            raise _dropped("misnamed_session", envelope)
        guard.remember(envelope)
        if session_id is not None and verdict.verified in ("agent", "relay_issuer"):
            self.sessions.keep(session_id, envelope, verdict.credential)
        return Delivery(
            envelope=envelope,
            sender=envelope["from"],
            type=envelope["type"],
            payload=opened,
            session_id=session_id,
            task_id=envelope.get("task_id"),
            verified=verdict.verified,
            issuer=verdict.issuer,
            sealed=is_sealed(envelope["payload"]),
            received_at_ms=incoming.received_at_ms,
            _replier=self.replier,
        )

    async def _verdict(self, envelope: Envelope, can_judge: bool) -> Verdict:
        signer = await self.verifier.check(envelope)
        if signer is None:
            raise _dropped("forged_delivery", envelope)
        if self.require_verified and not self.verifier.is_verified(signer.verified, envelope["key_id"]):
            raise _unverified(envelope)
        if self.require_verified and not can_judge:
            raise _dropped("clock_untrusted", envelope)
        return signer if can_judge else UNVERIFIED

    def _opened(self, envelope: Envelope, verdict: Verdict) -> JsonObject:
        """What is sealed opens from somebody whom this agent believes, or not at all."""
        if not is_sealed(envelope["payload"]):
            return envelope["payload"]
        opened = open_payload(envelope, self.sealing_keys) if verdict.verified == "agent" else None
        if opened is None:
            raise _dropped("unopenable_delivery", envelope)
        return opened


def _session_of(envelope: Envelope, told: str | None) -> str | None:
    """A decision names its session in the signed payload; the session of a request is named by the relay."""
    is_decision = envelope["type"] in ("session.approve", "session.reject")
    return session_id_of(envelope["payload"].get("session_id")) if is_decision else told


def _can_be_in(session_id: str | None, envelope: Envelope) -> bool:
    """What a request asks for is decided under its session's id: a relay could have another request decided by it."""
    if envelope["type"] != "session.request" or session_id is None:
        return True
    return is_session_of(session_id, request_digest(envelope))


def _unverified(envelope: Envelope) -> RelayError:
    """Says whose message it was, as its sender or the gateway says, and under which key, so that it can be pinned."""
    sender, key_id = envelope["from"], envelope["key_id"]
    if key_id.startswith(GATEWAY_KEY_PREFIX):
        message = (
            f"A message of {sender} came over HTTP, signed by a gateway whose key ({key_id}) is not pinned here;"
            " it was dropped."
        )
        hint = "Name that key id in trust.gateways, if the gateway is to be believed of whose API key it saw."
    else:
        message = f"Nothing that is pinned here vouches for the key ({key_id}) of a delivery of {sender}; it was dropped."
        hint = "Pin the sender's key in trust.keys, or its issuer in trust.issuers."
    return RelayError("unverified_delivery", envelope_id=envelope["id"], message=message, hint=hint)


def _dropped(code: str, envelope: Envelope) -> RelayError:
    return RelayError(code, envelope_id=envelope["id"])
