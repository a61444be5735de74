import type { Duplex } from "node:stream";
import type WebSocket from "ws";
import type { InflowPause } from "./inflow.ts";

/** Why a connection is not read for a while. */
export type PauseReason = "full_intake" | "draining" | InflowPause;

/** The others: its close waits for what was promised before it, or it has sent enough behind it; other connections have their turn. */
type Reason = PauseReason | "closing" | "others";

/** A bit for each reason: nearly every connection is paused once, and a set for each would be many. */
const PAUSE_BITS: Readonly<Record<Reason, number>> = {
  full_intake: 1,
  draining: 2,
  turn: 4,
  rate: 8,
  closing: 16,
  others: 32,
};

/** Frames that are taken in at once: more than a chunk has of envelopes, and few of those that cost their sender six bytes. */
const FRAMES_AT_ONCE = 256;
const NOTHING = Buffer.alloc(0);

/** What ws reads frames with. It has no method that ends a chunk: while `_loop` is true it goes on to the next frame. */
interface Receiver {
  readonly writable: boolean;
  _loop: boolean;
  write(chunk: Buffer): boolean;
}

/** Who is told what is read. */
export interface ReadingOwner {
  /** ws has handed over what there was, or was stopped. */
  handedOver(): void;
}

/**
 * Whether one socket is read. While it is not, what the client sends waits in the kernel, and then at the client; and what came
 * with the frame that paused it waits here, whatever it is: a chunk of 64 KiB can be 10,000 frames.
 */
export class Reading {
  readonly #owner: ReadingOwner;
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  /** The bits of the reasons for which it is not read. */
  #pausedFor = 0;
  /** True while ws is at a chunk. */
  #isUnderWay = false;
  /** True when ws has left a chunk before its end. */
  #hasRest = false;
  #framesLeft = FRAMES_AT_ONCE;

  /** @param stream the one under the socket. */
  constructor(owner: ReadingOwner, socket: WebSocket, stream: Duplex) {
    this.#owner = owner;
    this.#socket = socket;
    this.#stream = stream;
  }

  get isPaused(): boolean {
    return this.#pausedFor !== 0;
  }

  isPausedFor(reason: PauseReason): boolean {
    return this.#has(reason);
  }

  /** Has ws hand over the frames of a chunk, as far as nothing pauses it. */
  handOver(chunk: Buffer): void {
    const receiver = this.#receiver;
    // After a close frame, or one that is invalid, ws takes nothing.
    if (!receiver.writable) return;
    this.#framesLeft = FRAMES_AT_ONCE;
    this.#hasRest = false;
    this.#isUnderWay = true;
    const takesMore = receiver.write(chunk);
    this.#isUnderWay = false;
    // ws reads on by itself when it has room again.
    if (!takesMore) this.#stream.pause();
    this.#owner.handedOver();
  }

  /** A chunk is not looked at yet: it comes again when the socket is read. */
  putBack(chunk: Buffer): void {
    this.#stream.unshift(chunk);
  }

  /** A frame was handed over: after many of them the next connection has its turn. */
  frame(): void {
    this.#framesLeft -= 1;
    if (!this.#isUnderWay) {
      // What ws finds where it was not read when its socket went: nobody waits for an answer.
      this.passOver();
    } else if (this.#framesLeft === 0) {
      this.#pause("others");
      setImmediate(endTurn, this);
    }
  }

  /** Has ws leave the chunk that it is at. */
  passOver(): void {
    this.#receiver._loop = false;
  }

  pause(reason: PauseReason): void {
    this.#pause(reason);
  }

  /** Reads again when no other reason against it is left. */
  resume(reason: PauseReason): void {
    this.#resume(reason);
  }

  /** Its end is decided: it is not read until `readOn`, and then for its client's answer alone. */
  pauseToClose(): void {
    this.#pause("closing");
  }

  /** Whatever there was against it. */
  readOn(): void {
    this.#pausedFor = 0;
    process.nextTick(goOn, this);
  }

  /** Called in a tick of its own: who ends a pause may be at a frame. */
  goOn(): void {
    if (this.#hasRest && !this.isPaused) this.handOver(NOTHING);
    if (!this.isPaused) this.#socket.resume();
  }

  endTurn(): void {
    this.#resume("others");
  }

  get #receiver(): Receiver {
    return (this.#socket as unknown as { readonly _receiver: Receiver })._receiver;
  }

  #has(reason: Reason): boolean {
    return (this.#pausedFor & PAUSE_BITS[reason]) !== 0;
  }

  #pause(reason: Reason): void {
    if (this.#isUnderWay) {
      this.#hasRest = true;
      this.passOver();
    }
    if (this.#has(reason)) return;
    this.#pausedFor |= PAUSE_BITS[reason];
    this.#socket.pause();
  }

  #resume(reason: Reason): void {
    if (!this.#has(reason)) return;
    this.#pausedFor &= ~PAUSE_BITS[reason];
    process.nextTick(goOn, this);
  }
}

function goOn(reading: Reading): void {
  reading.goOn();
}

function endTurn(reading: Reading): void {
  reading.endTurn();
}
