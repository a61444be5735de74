"""Heartbeats in time, and connections that died without a close."""

import asyncio
import time
from collections.abc import Callable

from .limits import ANSWER_WITHIN_S

# How often the times are compared, at most; and by how much the two clocks may drift apart before it counts as a jump.
_TICK_S = 1.0
_JUMP_S = 3.0


class Keepalive:
    """Asks for heartbeats. Tells when nothing comes in after a request, or no answer for two intervals after a
    heartbeat.

    After a sleep of the machine, or any other jump of its clock, it asks for one at once: the connection may be long
    gone, and what came in meanwhile is not read yet.
    """

    def __init__(self, interval_s: float, send_heartbeat: Callable[[], None], timed_out: Callable[[], None]) -> None:
        self._interval_s = interval_s
        self._tick_s = min(_TICK_S, interval_s / 4)
        self._send_heartbeat = send_heartbeat
        self._timed_out = timed_out
        self._timer: asyncio.TimerHandle | None = None
        self._ticked_at = 0.0
        self._heartbeat_at = 0.0
        # Ticks since a request that has no answer. A process that stood still ticks once, and then reads what came in: by
        # the time alone it would give up an answer that is there.
        self._ticks_waited: int | None = None
        # The same since a heartbeat. Deliveries and notices do not show that anything goes out; answers do.
        self._heartbeat_ticks: int | None = None

    def start(self) -> None:
        self._heartbeat_at = time.monotonic()
        self._wait()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def request_sent(self) -> None:
        """Something was sent that the relay answers."""
        if self._ticks_waited is None:
            self._ticks_waited = 0

    def heartbeat_sent(self) -> None:
        """A register or heartbeat was sent."""
        if self._heartbeat_ticks is None:
            self._heartbeat_ticks = 0

    def answered(self) -> None:
        """Anything that was sent was answered: a heartbeat may wait for long behind what its key sends."""
        self._heartbeat_ticks = None

    def frame_received(self) -> None:
        self._ticks_waited = None

    def heartbeat_now(self) -> None:
        self._heartbeat_at = time.monotonic()
        self._send_heartbeat()

    def _wait(self) -> None:
        self._ticked_at = time.time()
        self._timer = asyncio.get_running_loop().call_later(self._tick_s, self._tick)

    def _tick(self) -> None:
        has_jumped = abs(time.time() - self._ticked_at - self._tick_s) > _JUMP_S
        if self._ticks_waited is not None:
            self._ticks_waited += 1
        if self._heartbeat_ticks is not None:
            self._heartbeat_ticks += 1
        self._wait()
        if has_jumped:
            self._ticks_waited = self._heartbeat_ticks = None
            self.heartbeat_now()
        elif self._is_dead():
            self._timed_out()
        elif time.monotonic() - self._heartbeat_at >= self._interval_s - self._tick_s:
            self.heartbeat_now()

    def _is_dead(self) -> bool:
        waited_s = (self._ticks_waited or 0) * self._tick_s
        heartbeat_s = (self._heartbeat_ticks or 0) * self._tick_s
        return waited_s > min(ANSWER_WITHIN_S, self._interval_s) or heartbeat_s > 2 * self._interval_s
