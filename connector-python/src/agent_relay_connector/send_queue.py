"""Sends that have no answer yet, in the order of their calls."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from .backoff import jittered_s
from .background import Background
from .clock import Clock
from .errors import RelayError
from .frames import AckFrame, ErrorFrame
from .limits import MAX_IN_FLIGHT, RESEND_MARGIN_MS
from .pending_sends import Acknowledged, PendingSend, PendingSends, SendDraft
from .refusal import refusal_of
from .signer import SignedEnvelope, Signer


class EnvelopeWriter(Protocol):
    """A registered connection, as far as the queue needs it."""

    @property
    def max_clock_skew_ms(self) -> float: ...
    @property
    def max_in_flight(self) -> int: ...
    @property
    def signer(self) -> Signer:
        """What signs on it: the key that was registered on it last."""

    def accepts(self, key_id: str) -> bool:
        """True for a key whose envelopes the relay takes on it now."""

    def send(self, text: str) -> None: ...


class SendQueue:
    """What a lost connection, an outage or a rate left open goes out again as it was signed, or not at all.

    Relay and recipient recognise a repeat. Source: docs/protocol.md#replay.
    """

    def __init__(
        self,
        clock: Clock,
        max_pending: int,
        not_registered: Callable[[], None],
        background: Background,
        why_away: Callable[[], RelayError | None],
    ) -> None:
        """not_registered: the relay said that the connection does not own the agent. why_away: why there is no connection,
        where that is known."""
        self._why_away = why_away
        self._clock = clock
        self._max_pending = max_pending
        self._not_registered = not_registered
        self._background = background
        self._pending = PendingSends()
        self._writer: EnvelopeWriter | None = None
        # How many may be in flight: one after a refusal because of a rate, then one more with each ack.
        self._allowed = MAX_IN_FLIGHT
        # While it runs, nothing is sent.
        self._hold: asyncio.TimerHandle | None = None
        self._is_flushing = False
        self._ended_by: RelayError | None = None

    def needs(self, key_id: str) -> bool:
        """True while an envelope that went out under this key may go out again."""
        return any(send.needs(key_id) for send in self._pending.all())

    async def add(
        self, envelope_id: str, to: str, draft: SendDraft, timeout_s: float, not_before: int = 0
    ) -> Acknowledged:
        """Returns the ack of the envelope. Raises RelayError. Cancelled, it is not sent again.

        not_before: see `Signer.sign`.
        """
        if self._ended_by is not None:
            raise self._ended_by.for_call("refused", envelope_id)
        if len(self._pending) >= self._max_pending:
            raise RelayError("queue_full")
        loop = asyncio.get_running_loop()
        send = PendingSend(envelope_id, to, draft, loop.create_future(), not_before)
        self._pending.add(send)
        timer = loop.call_later(timeout_s, lambda: self._fail(send, self._timeout(send)))
        self._flush()
        try:
            return await send.answer
        finally:
            timer.cancel()
            self._pending.remove(send)
            self._flush()

    def resume(self, writer: EnvelopeWriter) -> None:
        """There is a connection: all that has no answer goes out on it, in order."""
        self._pending.requeue_all()
        self._writer = writer
        self._end_hold()

    def pause(self) -> None:
        """There is no connection."""
        self._writer = None

    def acknowledge(self, ack: AckFrame) -> None:
        send = self._pending.get(ack.envelope_id)
        if send is None or send.signed is None:
            return
        self._allowed = min(MAX_IN_FLIGHT, self._allowed + 1)
        self._pending.remove(send)
        _settle(send, Acknowledged(ack, send.signed.text))
        self._flush()

    def refuse(self, frame: ErrorFrame) -> bool:
        """False when no send with this id is pending."""
        send = self._pending.get(frame.envelope_id)
        if send is None:
            return False
        error = refusal_of(frame.code, frame.message, frame.hint, retry=frame.retry, errors=frame.errors)
        code = error.code
        self._pending.requeue(send)
        if code in ("unavailable", "rate_limited", "not_registered"):
            self._retry_later(send, code, frame.retry_after_s)
        elif code == "clock_skew" and send.is_outcome_unknown:
            self._fail(send, RelayError("outcome_unknown"))
        else:
            self._fail(send, error)
        self._flush()
        return True

    def end(self, error: RelayError) -> None:
        """Ends all pending sends with the error, and all later ones."""
        self._ended_by = error
        self._writer = None
        if self._hold is not None:
            self._hold.cancel()
        for send in self._pending.all():
            self._fail(send, error)

    def _retry_later(self, send: PendingSend, code: str, retry_after_s: float) -> None:
        """Refused for the moment: the whole queue waits, so that nothing overtakes the envelope that goes out again."""
        send.refusal = code
        if code == "unavailable":
            send.is_outcome_unknown = True
        if code == "rate_limited":
            self._allowed = 1
        if code == "not_registered":
            self._not_registered()
        if self._hold is not None:
            self._hold.cancel()
        self._hold = asyncio.get_running_loop().call_later(jittered_s(retry_after_s), self._end_hold)

    def _end_hold(self) -> None:
        if self._hold is not None:
            self._hold.cancel()
        self._hold = None
        self._flush()

    def _timeout(self, send: PendingSend) -> RelayError:
        """Why no answer can have come, where there is no connection. What the target may have got has the hint that says so."""
        if self._writer is not None:
            return RelayError("timeout")
        cause = self._why_away()
        why = "There is no connection to the relay." if cause is None else cause.message
        hint = None if cause is None or send.may_be_accepted else cause.hint
        error = RelayError("timeout", f"No answer came in time. {why}", hint)
        error.__cause__ = cause
        return error

    def _fail(self, send: PendingSend, error: RelayError) -> None:
        if self._pending.get(send.id) is not send:
            return
        outcome = error.for_call("unknown" if send.may_be_accepted else "refused", send.id)
        outcome.__cause__ = error.__cause__
        self._pending.remove(send)
        _settle(send, outcome)
        self._flush()

    def _flush(self) -> None:
        """Sends what may go out, in order."""
        if self._is_flushing or self._next() is None:
            return
        self._is_flushing = True
        try:
            while (send := self._next()) is not None:
                self._transmit(send)
        finally:
            self._is_flushing = False

    def _next(self) -> PendingSend | None:
        if self._writer is None or self._hold is not None:
            return None
        most = min(self._allowed, self._writer.max_in_flight)
        return None if self._pending.in_flight >= most else self._pending.first_waiting()

    def _transmit(self, send: PendingSend) -> None:
        if not isinstance(send.draft, str):
            send.is_being_drafted = True
            self._background.spawn(self._make_draft(send, send.draft))
            return
        writer = self._writer
        assert writer is not None
        if send.signed is not None and not self._can_resend(send.signed, writer):
            return self._fail(send, RelayError(send.lapse))
        try:
            signed = send.signed or writer.signer.sign(send.draft, send.not_before)
        except RelayError as error:
            return self._fail(send, error)
        self._pending.mark_in_flight(send, signed)
        writer.send(signed.text)

    async def _make_draft(self, send: PendingSend, make: Callable[[], Awaitable[str]]) -> None:
        """It goes out when it is there, unless another connection or a hold has come: then when it may."""
        try:
            send.draft = await make()
        except RelayError as error:
            self._fail(send, error)
        send.is_being_drafted = False
        self._flush()

    def _can_resend(self, signed: SignedEnvelope, writer: EnvelopeWriter) -> bool:
        """As it was signed: the relay takes it neither late nor under a key that has ended."""
        max_age_ms = writer.max_clock_skew_ms - RESEND_MARGIN_MS
        return self._clock.now() - signed.ts <= max_age_ms and writer.accepts(signed.key_id)


def _settle(send: PendingSend, outcome: Acknowledged | RelayError) -> None:
    if send.answer.done():
        return
    if isinstance(outcome, RelayError):
        send.answer.set_exception(outcome)
    else:
        send.answer.set_result(outcome)
