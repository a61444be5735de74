import type { Duplex } from "node:stream";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type WebSocket from "ws";
import { framed } from "./socket.ts";

/** The bounds of an outbox, and why its connection is closed beyond one. Source: docs/security.md#limits. */
export type OutboxLimit = "outbox" | "outbox_total" | "outbox_stalled";

/** One of the outboxes, as far as all of them together are concerned. */
export interface CountedOutbox {
  /** That wait in it. */
  readonly bytes: number;
  /** @returns how many looks in a row, this one included, found that nothing drained. */
  idleCheck(): number;
  /** Has its connection closed. */
  giveUp(limit: OutboxLimit): void;
}

export interface OutboxSettings {
  /** Of one outbox. */
  readonly outboxBytes: number;
  /** Of all of them; 0 for no limit. */
  readonly outboxTotal: number;
}

/** How often the outboxes in which something waits are looked at. */
export const OUTBOX_CHECK_MS = 1000;

/** Looks in a row that may find that nothing drained. Counted rather than timed: a pod that stood still has not looked. */
const MAX_IDLE_CHECKS = CONNECTION_LIMITS.outboxStalledAfterMs / OUTBOX_CHECK_MS;

/**
 * The outboxes of a pod: their bounds, and what waits in all of them together. An outbox in which nothing waits, which is
 * nearly every one, costs nothing here. Source: docs/protocol.md#slow-readers.
 */
export class OutboxBudget {
  /** Above the first an outbox is congested, below the second no longer; above the third its connection is closed. */
  readonly congestedAbove: number;
  readonly clearedBelow: number;
  readonly fullAbove: number;
  readonly #totalBytes: number;
  readonly #waiting = new Set<CountedOutbox>();
  #bytes = 0;
  #congested = 0;

  constructor({ outboxBytes, outboxTotal }: OutboxSettings) {
    this.congestedAbove = outboxBytes * CONNECTION_LIMITS.outboxCongestedShare;
    this.clearedBelow = outboxBytes * CONNECTION_LIMITS.outboxClearedShare;
    this.fullAbove = outboxBytes * CONNECTION_LIMITS.outboxFullFactor;
    this.#totalBytes = outboxTotal === 0 ? Number.POSITIVE_INFINITY : outboxTotal;
  }

  /** Bytes that wait in all outboxes. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Bytes that wait in the fullest. */
  get mostBytes(): number {
    return this.#fullest()?.bytes ?? 0;
  }

  /** How many are congested. */
  get congested(): number {
    return this.#congested;
  }

  /** What waits in an outbox has changed. */
  changed(outbox: CountedOutbox, before: number): void {
    this.#bytes += outbox.bytes - before;
    if (outbox.bytes === 0) this.#waiting.delete(outbox);
    else this.#waiting.add(outbox);
    // Who reads fast has little waiting: the fullest gives way, not who happens to be sent to.
    while (this.#bytes > this.#totalBytes) this.#fullest()?.giveUp("outbox_total");
  }

  /** An outbox has become congested, or no longer is. */
  congestionChanged(isCongested: boolean): void {
    this.#congested += isCongested ? 1 : -1;
  }

  /** Gives up those of which nothing drained for too long. Called once in OUTBOX_CHECK_MS. */
  check(): void {
    for (const outbox of this.#waiting) if (outbox.idleCheck() > MAX_IDLE_CHECKS) outbox.giveUp("outbox_stalled");
  }

  #fullest(): CountedOutbox | undefined {
    let fullest: CountedOutbox | undefined;
    for (const outbox of this.#waiting) if (outbox.bytes > (fullest?.bytes ?? 0)) fullest = outbox;
    return fullest;
  }
}

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
  readonly #all: OutboxBudget;
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
  constructor(owner: OutboxOwner, all: OutboxBudget, socket: WebSocket, stream: Duplex) {
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
