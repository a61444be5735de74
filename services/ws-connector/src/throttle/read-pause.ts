import type { Duplex } from "node:stream";
import type WebSocket from "ws";
import type { ThrottlePause } from "./throttle.ts";

/** The reason for which the pod does not read a connection for a while. */
export type PauseReason = "full_intake" | "draining" | ThrottlePause;

/**
 * `closing`: the close frame waits for earlier frames, or the client has sent too much after it. `others`: other
 * connections have their turn.
 */
type Reason = PauseReason | "closing" | "others";

/** Reasons are bits, because a set for each connection would take too much memory. */
const PAUSE_BITS: Readonly<Record<Reason, number>> = {
  full_intake: 1,
  draining: 2,
  turn: 4,
  rate: 8,
  closing: 16,
  others: 32,
};

/**
 * Frames of one connection before others have their turn. A chunk can have 10,000 empty frames, but fewer envelopes
 * than this.
 */
const FRAMES_AT_ONCE = 256;
const NOTHING = Buffer.alloc(0);

/** The parser of ws. It has no method to leave a chunk. While `_loop` is true, it goes on to the next frame. */
interface Receiver {
  readonly writable: boolean;
  _loop: boolean;
  write(chunk: Buffer): boolean;
}

export interface ReadPauseOwner {
  /** ws has left a chunk, at its end or earlier. */
  handedOver(): void;
}

/**
 * Reads one socket, or pauses it. During a pause the rest of the current chunk waits here, because 64 KiB can be 10,000
 * frames. Later bytes wait in the kernel, and then at the client.
 */
export class ReadPause {
  readonly #owner: ReadPauseOwner;
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  /** Bits of PAUSE_BITS. */
  #pausedFor = 0;
  /** True while ws reads a chunk. */
  #isUnderWay = false;
  /** True if ws has left a chunk before its end. */
  #hasRest = false;
  #framesLeft = FRAMES_AT_ONCE;

  /** @param stream the stream under the socket. */
  constructor(owner: ReadPauseOwner, socket: WebSocket, stream: Duplex) {
    this.#owner = owner;
    this.#socket = socket;
    this.#stream = stream;
  }

  get isPaused(): boolean {
    return this.#pausedFor !== 0;
  }

  isPausedFor(reason: Reason): boolean {
    return (this.#pausedFor & PAUSE_BITS[reason]) !== 0;
  }

  /** Makes ws hand over the frames of a chunk, up to a frame that pauses the connection. */
  handOver(chunk: Buffer): void {
    const receiver = this.#receiver;
    // After a close frame or an invalid frame, ws takes no bytes.
    if (!receiver.writable) return;
    this.#framesLeft = FRAMES_AT_ONCE;
    this.#hasRest = false;
    this.#isUnderWay = true;
    const takesMore = receiver.write(chunk);
    this.#isUnderWay = false;
    // ws resumes the stream itself when it has room again.
    if (!takesMore) this.#stream.pause();
    this.#owner.handedOver();
  }

  /** The chunk comes again when the pod reads the socket again. */
  putBack(chunk: Buffer): void {
    this.#stream.unshift(chunk);
  }

  /** ws handed over a frame. After many frames other connections have their turn. */
  frame(): void {
    this.#framesLeft -= 1;
    if (!this.#isUnderWay) {
      // The socket is gone, and ws reads the rest of it. No client waits for an answer.
      this.passOver();
    } else if (this.#framesLeft === 0) {
      this.pause("others");
      setImmediate(endTurn, this);
    }
  }

  /** Makes ws leave the chunk after the current frame. */
  passOver(): void {
    this.#receiver._loop = false;
  }

  pause(reason: Reason): void {
    if (this.#isUnderWay) {
      this.#hasRest = true;
      this.passOver();
    }
    if (this.isPausedFor(reason)) return;
    this.#pausedFor |= PAUSE_BITS[reason];
    this.#socket.pause();
  }

  /** Reads again if no other reason for the pause is left. */
  resume(reason: Reason): void {
    if (!this.isPausedFor(reason)) return;
    this.#pausedFor &= ~PAUSE_BITS[reason];
    process.nextTick(goOn, this);
  }

  /** Reads again, and drops all reasons for the pause. */
  resumeAll(): void {
    this.#pausedFor = 0;
    process.nextTick(goOn, this);
  }

  /** Called in a later tick, because a pause may end while ws reads a chunk. */
  goOn(): void {
    if (this.#hasRest && !this.isPaused) this.handOver(NOTHING);
    if (!this.isPaused) this.#socket.resume();
  }

  get #receiver(): Receiver {
    return (this.#socket as unknown as { readonly _receiver: Receiver })._receiver;
  }
}

function goOn(readPause: ReadPause): void {
  readPause.goOn();
}

function endTurn(readPause: ReadPause): void {
  readPause.resume("others");
}
