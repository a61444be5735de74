import type { Duplex } from "node:stream";
import type WebSocket from "ws";

/** Bytes of a frame's head, by the length of its text. Source: RFC 6455, section 5.2. */
const SHORT_HEAD = 2;
const MEDIUM_HEAD = 4;
const LONG_HEAD = 10;
const FINAL_TEXT = 0x81;

/**
 * What waits to be sent on one socket. The texts of one tick leave as one piece: making frames and writes of each by
 * itself would cost more than all that the relay checks. Pings, pongs and closes are ws' own.
 */
export class Outbox {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  /** Of this tick. */
  #texts: string[] | undefined;
  #characters = 0;

  /** @param stream carries the socket. */
  constructor(socket: WebSocket, stream: Duplex) {
    this.#socket = socket;
    this.#stream = stream;
  }

  /** Bytes that wait to be sent; a character of this tick's texts counts as one. */
  get bytes(): number {
    return this.#socket.bufferedAmount + this.#characters;
  }

  /** Takes one text. */
  send(text: string): void {
    if (this.#texts === undefined) {
      this.#texts = [];
      process.nextTick(flush, this);
    }
    this.#texts.push(text);
    this.#characters += text.length;
  }

  /** Writes what the tick has brought so far: before a close, after which nothing may follow. */
  flush(): void {
    const texts = this.#texts;
    if (texts === undefined) return;
    this.#texts = undefined;
    this.#characters = 0;
    if (this.#socket.readyState === this.#socket.OPEN) this.#stream.write(framed(texts));
  }
}

function flush(outbox: Outbox): void {
  outbox.flush();
}

/** One unmasked text frame each. Source: RFC 6455, section 5.2. */
function framed(texts: readonly string[]): Buffer {
  const lengths = texts.map((text) => Buffer.byteLength(text));
  let size = 0;
  for (const length of lengths) size += headOf(length) + length;
  const buffer = Buffer.allocUnsafe(size);
  let at = 0;
  for (let index = 0; index < texts.length; index += 1) {
    at = writeHead(buffer, at, lengths[index] as number);
    at += buffer.write(texts[index] as string, at);
  }
  return buffer;
}

function headOf(length: number): number {
  if (length < 126) return SHORT_HEAD;
  return length < 65_536 ? MEDIUM_HEAD : LONG_HEAD;
}

/** @returns where the text goes. */
function writeHead(buffer: Buffer, at: number, length: number): number {
  const head = headOf(length);
  buffer[at] = FINAL_TEXT;
  if (head === SHORT_HEAD) buffer[at + 1] = length;
  else if (head === MEDIUM_HEAD) {
    buffer[at + 1] = 126;
    buffer.writeUInt16BE(length, at + 2);
  } else {
    buffer[at + 1] = 127;
    buffer.writeBigUInt64BE(BigInt(length), at + 2);
  }
  return at + head;
}
