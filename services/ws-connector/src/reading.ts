import type WebSocket from "ws";
import type { InflowPause } from "./inflow.ts";

/** Why a connection is not read for a while. */
export type PauseReason = "full_intake" | "draining" | InflowPause;

/** A bit for each reason: nearly every connection is paused once, and a set for each would be many. */
const PAUSE_BITS: Readonly<Record<PauseReason, number>> = { full_intake: 1, draining: 2, turn: 4, rate: 8 };

/** Whether one socket is read. While it is not, what the client sends waits in the kernel, and then at the client. */
export class Reading {
  readonly #socket: WebSocket;
  /** The bits of the reasons for which it is not read. */
  #pausedFor = 0;

  constructor(socket: WebSocket) {
    this.#socket = socket;
  }

  get isPaused(): boolean {
    return this.#pausedFor !== 0;
  }

  isPausedFor(reason: PauseReason): boolean {
    return (this.#pausedFor & PAUSE_BITS[reason]) !== 0;
  }

  /** Returns true when it was not paused for this reason before. */
  pause(reason: PauseReason): boolean {
    if (this.isPausedFor(reason)) return false;
    this.#pausedFor |= PAUSE_BITS[reason];
    this.#socket.pause();
    return true;
  }

  /** Reads again when no other reason against it is left. */
  resume(reason: PauseReason): void {
    if (!this.isPausedFor(reason)) return;
    this.#pausedFor &= ~PAUSE_BITS[reason];
    if (this.#pausedFor === 0) this.#socket.resume();
  }
}
