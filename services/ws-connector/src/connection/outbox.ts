import type { Duplex } from "node:stream";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type WebSocket from "ws";

/** The limits of an outbox. A connection that exceeds one is closed. Source: docs/security.md#limits. */
export type OutboxLimit = "outbox" | "outbox_total" | "outbox_stalled";

/** One outbox, as `OutboxBudget` sees it. */
export interface CountedOutbox {
  /** Bytes that wait in the outbox. */
  readonly bytes: number;
  /** @returns consecutive checks, including this one, during which nothing drained. */
  idleCheck(): number;
  /** Makes the owner close the connection. */
  giveUp(limit: OutboxLimit): void;
}

export interface OutboxSettings {
  /** Limit of one outbox, in bytes. */
  readonly outboxBytes: number;
  /** Limit of all outboxes of the pod together, in bytes. 0 = no limit. */
  readonly outboxTotal: number;
}

/** Interval between two checks of the outboxes that hold bytes. */
export const OUTBOX_CHECK_MS = 1000;

/**
 * Most consecutive checks during which nothing drains. Checks are counted, not timed: a pod that stood still made no
 * checks.
 */
const MAX_IDLE_CHECKS = CONNECTION_LIMITS.outboxStalledAfterMs / OUTBOX_CHECK_MS;

/**
 * The limits of all outboxes of a pod, and the bytes that wait in them together. An empty outbox costs nothing here,
 * and nearly every outbox is empty. Source: docs/protocol.md#slow-readers.
 */
export class OutboxBudget {
  /**
   * Above these bytes an outbox becomes congested. At `clearedBelow` or less it stops being so. Above `fullAbove` its
   * connection is closed.
   */
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

  /** Bytes that wait in the fullest outbox. */
  get mostBytes(): number {
    return this.#fullest()?.bytes ?? 0;
  }

  /** The number of congested outboxes. */
  get congested(): number {
    return this.#congested;
  }

  /** The bytes that wait in an outbox have changed. @param before the bytes before the change. */
  changed(outbox: CountedOutbox, before: number): void {
    this.#bytes += outbox.bytes - before;
    if (outbox.bytes === 0) this.#waiting.delete(outbox);
    else this.#waiting.add(outbox);
    // The fullest outbox gives way, not the outbox that just got a frame. A client that reads fast has few bytes
    // waiting.
    while (this.#bytes > this.#totalBytes) this.#fullest()?.giveUp("outbox_total");
  }

  /** An outbox has become congested, or stopped being so. */
  congestionChanged(isCongested: boolean): void {
    this.#congested += isCongested ? 1 : -1;
  }

  /** Gives up each outbox from which nothing drained for too long. Called every OUTBOX_CHECK_MS. */
  check(): void {
    for (const outbox of this.#waiting) if (outbox.idleCheck() > MAX_IDLE_CHECKS) outbox.giveUp("outbox_stalled");
  }

  #fullest(): CountedOutbox | undefined {
    let fullest: CountedOutbox | undefined;
    for (const outbox of this.#waiting) if (outbox.bytes > (fullest?.bytes ?? 0)) fullest = outbox;
    return fullest;
  }
}

/** Most UTF-16 units of one write. The outbox sees a client's progress only when a whole write is taken. */
const WRITTEN_TOGETHER = 65_536;

/** The connection that has the outbox. */
export interface OutboxOwner {
  /** The outbox has become congested, or stopped being so. */
  congestionChanged(): void;
  /** The owner must close: too many bytes wait, or nothing drains. */
  readsTooSlowly(limit: OutboxLimit): void;
}

/**
 * The frames that wait to be sent on one socket. The outbox writes the texts of one tick together. A write for each
 * text would cost more than all checks of the relay. ws writes pings, pongs and closes; they also count.
 */
export class Outbox implements CountedOutbox {
  readonly #owner: OutboxOwner;
  readonly #all: OutboxBudget;
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  /** Texts sent in this tick. Undefined if there are none. */
  #texts: string[] | undefined;
  #characters = 0;
  /** Bytes that the kernel had not taken at the last count. */
  #bytes = 0;
  #isCongested = false;
  #idleChecks = 0;
  /** Writes of this outbox that the kernel has not taken completely. */
  #writes = 0;
  /** The callback of `whenTaken`. While it is set, no more texts come. */
  #taken: (() => void) | undefined;
  #isClosed = false;

  /** @param stream the stream under the socket. */
  constructor(owner: OutboxOwner, all: OutboxBudget, socket: WebSocket, stream: Duplex) {
    this.#owner = owner;
    this.#all = all;
    this.#socket = socket;
    this.#stream = stream;
  }

  /** Bytes that the kernel has not taken. A closed outbox has none: its bytes go with the socket. */
  get bytes(): number {
    return this.#bytes;
  }

  /** True from more than half full until at most an eighth full. */
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

  /** Writes the texts of this tick now, because nothing may follow a close. */
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
   * No more texts come. The texts that were sent still count, because they were promised. `taken` is called when the
   * kernel has taken them or the outbox is closed. If that is so now, `taken` is called at once. Frames that only ws
   * wrote are not waited for.
   */
  whenTaken(taken: () => void): void {
    this.flush();
    if (this.#isClosed || this.#writes === 0 || this.#stream.writableLength === 0) {
      taken();
      return;
    }
    this.#taken = taken;
  }

  /**
   * Writes the texts of this tick, and stops the count: the bytes that wait go with the socket. The count stops first, so
   * that an outbox that is given up is not given up once more for its last texts.
   */
  close(): void {
    this.#isClosed = true;
    this.flush();
    this.count();
    this.#tellTaken();
  }

  /**
   * Counts the bytes after a write, or after the kernel took bytes. If too many wait, the owner closes the connection.
   */
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
    // ws does not tell the outbox when the kernel has taken a frame of ws.
    this.count();
    this.#idleChecks = this.#bytes < before ? 0 : this.#idleChecks + 1;
    return this.#idleChecks;
  }

  giveUp(limit: OutboxLimit): void {
    this.#owner.readsTooSlowly(limit);
  }

  /** The kernel took one whole write, or the socket is gone. */
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

  /** Without `_writev` each write ends by itself. So the outbox sees progress before all waiting bytes are taken. */
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

/** Header bytes of a frame, by the length of its text. Source: RFC 6455, section 5.2. */
const SHORT_HEADER = 2;
const MEDIUM_HEADER = 4;
const LONG_HEADER = 10;
const FINAL_TEXT = 0x81;

/** One unmasked text frame for each text. Source: RFC 6455, section 5.2. */
function framed(texts: readonly string[]): Buffer {
  const lengths = texts.map((text) => Buffer.byteLength(text));
  let size = 0;
  for (const length of lengths) size += headerBytes(length) + length;
  const buffer = Buffer.allocUnsafe(size);
  let at = 0;
  for (let index = 0; index < texts.length; index += 1) {
    at = writeHeader(buffer, at, lengths[index] as number);
    at += buffer.write(texts[index] as string, at);
  }
  return buffer;
}

function headerBytes(length: number): number {
  if (length < 126) return SHORT_HEADER;
  return length < 65_536 ? MEDIUM_HEADER : LONG_HEADER;
}

/** @returns the offset of the text. */
function writeHeader(buffer: Buffer, at: number, length: number): number {
  const header = headerBytes(length);
  buffer[at] = FINAL_TEXT;
  if (header === SHORT_HEADER) buffer[at + 1] = length;
  else if (header === MEDIUM_HEADER) {
    buffer[at + 1] = 126;
    buffer.writeUInt16BE(length, at + 2);
  } else {
    buffer[at + 1] = 127;
    buffer.writeBigUInt64BE(BigInt(length), at + 2);
  }
  return at + header;
}
