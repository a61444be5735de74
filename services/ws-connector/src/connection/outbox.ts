import type { Duplex } from "node:stream";
import type WebSocket from "ws";
import { framed } from "./framing.ts";
import type { CountedOutbox, Outboxes, OutboxLimit } from "./outboxes.ts";

/** Texts of one tick are written together up to so many UTF-16 units: a reader's progress is seen by whole writes. */
const WRITTEN_TOGETHER = 65_536;

/** Whose outbox it is. */
export interface OutboxOwner {
  /** The outbox has become congested, or no longer is. */
  congestionChanged(): void;
  /** More waits than may, or nothing drains: the owner is to close. */
  readsTooSlowly(limit: OutboxLimit): void;
}

/**
 * The frames that wait to be sent on one socket. The texts of one tick are framed and written together: a write for each
 * would cost more than all checks of the relay. Pings, pongs and closes are written by ws, and count as well.
 */
export class Outbox implements CountedOutbox {
  readonly #owner: OutboxOwner;
  readonly #all: Outboxes;
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  /** Sent in this tick; undefined when there are none. */
  #texts: string[] | undefined;
  #characters = 0;
  /** What the kernel has not taken, when it was last asked for. */
  #bytes = 0;
  #isCongested = false;
  #idleChecks = 0;
  /** Writes of this outbox of which the kernel has not taken all. */
  #writes = 0;
  /** Nothing comes any more; called once what there was is taken. */
  #taken: (() => void) | undefined;
  #isClosed = false;

  /** @param stream the stream under the socket. */
  constructor(owner: OutboxOwner, all: Outboxes, socket: WebSocket, stream: Duplex) {
    this.#owner = owner;
    this.#all = all;
    this.#socket = socket;
    this.#stream = stream;
  }

  /** Bytes that wait for the kernel to take them; none of a closed outbox, whose socket goes with what it holds. */
  get bytes(): number {
    return this.#bytes;
  }

  /** From more than half full until less than an eighth. */
  get isCongested(): boolean {
    return this.#isCongested;
  }

  send(text: string): void {
    if (this.#texts === undefined) {
      this.#texts = [];
      process.nextTick(flush, this);
    }
    this.#texts.push(text);
    this.#characters += text.length;
    if (this.#characters >= WRITTEN_TOGETHER) this.flush();
  }

  /** Writes the texts of this tick now: nothing may follow a close. */
  flush(): void {
    const texts = this.#texts;
    if (texts === undefined) return;
    this.#texts = undefined;
    this.#characters = 0;
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    this.#writes += 1;
    this.#stream.write(framed(texts), () => this.#written());
    this.count();
  }

  /**
   * Nothing more comes. What was sent was promised, and goes on to count until the kernel has taken it, or it is given up: then, or
   * at once where that is so already, `taken` is called. What only ws wrote is waited for by nobody.
   */
  whenTaken(taken: () => void): void {
    this.flush();
    if (this.#isClosed || this.#writes === 0 || this.#stream.writableLength === 0) {
      taken();
      return;
    }
    this.#taken = taken;
  }

  /** Counts nothing any more: what waits goes with the socket. */
  close(): void {
    this.#isClosed = true;
    this.count();
    this.#tellTaken();
  }

  /** Something was written to the socket, or taken of it. Closes its connection through the owner where that is too much. */
  count(): void {
    const before = this.#bytes;
    this.#bytes = this.#isClosed ? 0 : this.#stream.writableLength;
    if (this.#bytes === before) return;
    if (before === 0) this.#beginToWait();
    this.#all.changed(this, before);
    this.#judge();
  }

  idleCheck(): number {
    const before = this.#bytes;
    // What ws wrote tells nobody when it is gone.
    this.count();
    this.#idleChecks = this.#bytes < before ? 0 : this.#idleChecks + 1;
    return this.#idleChecks;
  }

  giveUp(limit: OutboxLimit): void {
    this.#owner.readsTooSlowly(limit);
  }

  /** The kernel took what one write brought, or the socket is gone. */
  #written(): void {
    this.#writes -= 1;
    this.#idleChecks = 0;
    this.count();
    if (this.#writes === 0) this.#tellTaken();
  }

  #tellTaken(): void {
    const taken = this.#taken;
    this.#taken = undefined;
    taken?.();
  }

  /** Without a gathering write each write ends by itself, so that progress is seen before all that waits is gone. */
  #beginToWait(): void {
    this.#idleChecks = 0;
    (this.#stream as { _writev: unknown })._writev = undefined;
  }

  #judge(): void {
    const { congestedAbove, clearedBelow, fullAbove } = this.#all;
    const isCongested = this.#bytes > (this.#isCongested ? clearedBelow : congestedAbove);
    if (isCongested !== this.#isCongested) {
      this.#isCongested = isCongested;
      this.#all.congestionChanged(isCongested);
      if (!this.#isClosed && this.#taken === undefined) this.#owner.congestionChanged();
    }
    if (this.#bytes > fullAbove) this.giveUp("outbox");
  }
}

function flush(outbox: Outbox): void {
  outbox.flush();
}
