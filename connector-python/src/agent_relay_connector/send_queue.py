"""Sends that have no answer yet, in the order of their calls."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import Protocol

from .background import Background
from .clock import Clock
from .errors import RelayError
from .frames import AckFrame, ErrorFrame
from .holds import Holds
from .limits import MAX_IN_FLIGHT, RESEND_MARGIN_MS, RETRY_AFTER_S
from .pending_sends import Acknowledged, Hold, PendingSend, PendingSends, SendDraft
from .refusal import refusal_of
from .signer import SignedEnvelope, Signer

# The relay cannot say whether it took the envelope.
_MAY_BE_ACCEPTED = ("unavailable", "internal_error")


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
        self._holds = Holds(self._hold_is_over)
        self._is_flushing = False
        self._ended_by: RelayError | None = None

    def needs(self, key_id: str) -> bool:
        """True while an envelope that went out under this key may go out again."""
        return any(send.needs(key_id) for send in self._pending.all())

    async def add(
        self, envelope_id: str, kind: str, to: str, draft: SendDraft, timeout_s: float, not_before: int = 0
    ) -> Acknowledged:
        """Returns the ack of the envelope. Raises RelayError, or what drafting, signing or writing failed with. Cancelled,
        it is not sent again.

        kind: its `type`. not_before: see `Signer.sign`.
        """
        if self._ended_by is not None:
            raise self._ended_by.for_call("refused", envelope_id)
        if len(self._pending) >= self._max_pending:
            raise RelayError("queue_full")
        loop = asyncio.get_running_loop()
        scopes = self._holds.scopes_of(kind, to)
        deadline = loop.time() + timeout_s
        send = PendingSend(envelope_id, kind, to, draft, loop.create_future(), deadline, scopes, not_before)
        self._pending.add(send)
        timer = loop.call_later(timeout_s, self._timed_out, send)
        self._fail_late([send])
        self._flush()
        try:
            return await send.answer
        finally:
            timer.cancel()
            if self._pending.get(send.id) is send:
                self._remove(send)
                self._flush()

    def resume(self, writer: EnvelopeWriter) -> None:
        """There is a connection: all that has no answer goes out on it, in order."""
        self._holds.clear()
        self._pending.requeue_all()
        self._writer = writer
        self._flush()

    def pause(self) -> None:
        """There is no connection."""
        self._writer = None

    def acknowledge(self, ack: AckFrame) -> None:
        send = self._pending.get(ack.envelope_id)
        if send is None or send.signed is None:
            return
        self._holds.answered(send)
        self._remove(send)
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
        if code in _MAY_BE_ACCEPTED:
            send.is_outcome_unknown = True
        if code in ("unavailable", "rate_limited", "not_registered"):
            send.refusal = code
            if code == "not_registered":
                self._not_registered()
            late = self._holds.begin(send, error, frame.retry_after_s)
            self._pending.look(send.to)
            self._fail_late([send, *late])
            self._flush()
            return True
        self._holds.answered(send)
        if code == "clock_skew" and send.is_outcome_unknown:
            self._fail(send, RelayError("outcome_unknown"))
        else:
            # Where the same may succeed later.
            error.retry_after = frame.retry_after_s if error.retry == "later" else None
            self._fail(send, error)
        self._flush()
        return True

    def end(self, error: RelayError) -> None:
        """Ends all pending sends with the error, and all later ones."""
        self._ended_by = error
        self._writer = None
        self._holds.clear()
        for send in self._pending.all():
            self._fail(send, error)

    def _hold_is_over(self, scope: str) -> None:
        self._pending.look(scope)
        self._flush()

    def _fail_late(self, sends: list[PendingSend]) -> None:
        """What a hold outlasts ends at once, as the relay refused what it holds.

        Without a connection the next one may end the hold.
        """
        if self._writer is None:
            return
        for send in sends:
            hold = None if send.is_in_flight else _last_of(self._pending.holds_of(send))
            if hold is not None and hold.ends_at >= send.deadline:
                self._fail_held(send, hold)

    def _timed_out(self, send: PendingSend) -> None:
        holds = [] if self._writer is None else self._pending.holds_of(send)
        if holds:
            self._fail_held(send, holds[0])
        else:
            self._fail(send, self._timeout(send))

    def _fail_held(self, send: PendingSend, hold: Hold) -> None:
        left_s = max(hold.ends_at - asyncio.get_running_loop().time(), RETRY_AFTER_S)
        retry_after_s = math.ceil(left_s * 1000) / 1000
        known = " The target may have got it: ask it first." if send.may_be_accepted else ""
        said = hold.refusal
        hint = f"Wait {retry_after_s} s, then try again.{known}"
        self._fail(send, RelayError(said.code, said.message, hint, retry=said.retry, retry_after=retry_after_s))

    def _timeout(self, send: PendingSend) -> RelayError:
        """Why no answer can have come, where there is no connection. What the target may have got has the hint that says so."""
        if self._writer is not None:
            return RelayError("timeout")
        cause = self._why_away()
        why = "There is no connection to the relay." if cause is None else cause.message
        hint = None if cause is None or send.may_be_accepted else cause.hint
        error = RelayError("timeout", f"The time for it is over. {why}", hint)
        error.__cause__ = cause
        return error

    def _fail(self, send: PendingSend, error: Exception) -> None:
        """A fault that is no refusal reaches the caller as it is."""
        if self._pending.get(send.id) is not send:
            return
        outcome = error
        if isinstance(error, RelayError):
            outcome = error.for_call("unknown" if send.may_be_accepted else "refused", send.id)
            outcome.__cause__ = error.__cause__
        self._remove(send)
        _settle(send, outcome)
        self._flush()

    def _remove(self, send: PendingSend) -> None:
        self._pending.remove(send)
        self._holds.forget_unused(send.scopes)

    def _flush(self) -> None:
        """Sends what may go out, in order."""
        if self._is_flushing:
            return
        self._is_flushing = True
        while (send := self._next()) is not None:
            try:
                self._transmit(send)
            except Exception as error:
                self._fail(send, error)
        self._is_flushing = False

    def _next(self) -> PendingSend | None:
        return self._pending.first_waiting(self._most())

    def _most(self) -> int:
        """How many may be in flight."""
        return 0 if self._writer is None else min(MAX_IN_FLIGHT, self._writer.max_in_flight)

    def _transmit(self, send: PendingSend) -> None:
        if not isinstance(send.draft, str):
            send.is_being_drafted = True
            self._pending.look(send.to)
            self._background.spawn(self._make_draft(send, send.draft))
            return
        writer = self._writer
        assert writer is not None
        if send.signed is not None and not self._can_resend(send.signed, writer):
            return self._fail(send, RelayError(send.lapse))
        signed = send.signed or writer.signer.sign(send.draft, send.not_before)
        self._pending.mark_in_flight(send, signed)
        writer.send(signed.text)

    async def _make_draft(self, send: PendingSend, make: Callable[[], Awaitable[str]]) -> None:
        """It goes out when it is there, unless another connection or a hold has come: then when it may."""
        try:
            send.draft = await make()
        except Exception as error:
            self._fail(send, error)
        send.is_being_drafted = False
        self._pending.look(send.to)
        self._flush()

    def _can_resend(self, signed: SignedEnvelope, writer: EnvelopeWriter) -> bool:
        """As it was signed: the relay takes it neither late nor under a key that has ended."""
        max_age_ms = writer.max_clock_skew_ms - RESEND_MARGIN_MS
        return self._clock.now() - signed.ts <= max_age_ms and writer.accepts(signed.key_id)


def _last_of(holds: list[Hold]) -> Hold | None:
    """The one that ends last of those whose time runs."""
    running = [hold for hold in holds if hold.timer is not None]
    return max(running, key=lambda hold: hold.ends_at) if running else None


def _settle(send: PendingSend, outcome: Acknowledged | Exception) -> None:
    if send.answer.done():
        return
    if isinstance(outcome, Exception):
        send.answer.set_exception(outcome)
    else:
        send.answer.set_result(outcome)
