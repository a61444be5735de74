import type { Duplex } from "node:stream";
import type WebSocket from "ws";

/** Bytes of a frame's header, by the length of its text. Source: RFC 6455, section 5.2. */
const SHORT_HEADER = 2;
const MEDIUM_HEADER = 4;
const LONG_HEADER = 10;
const FINAL_TEXT = 0x81;

/**
 * The frames that wait to be sent on one socket. The texts of one tick are framed and written together: a write for each
 * would cost more than all checks of the relay. Pings, pongs and closes are written by ws.
 */
export class Outbox {
  readonly #socket: WebSocket;
  readonly #stream: Duplex;
  /** Sent in this tick; undefined when there are none. */
  #texts: string[] | undefined;
  #characters = 0;

  /** @param stream the stream under the socket. */
  constructor(socket: WebSocket, stream: Duplex) {
    this.#socket = socket;
    this.#stream = stream;
  }

  /** Bytes that wait to be sent; of this tick's texts the UTF-16 units are counted. */
  get bytes(): number {
    return this.#socket.bufferedAmount + this.#characters;
  }

  send(text: string): void {
    if (this.#texts === undefined) {
      this.#texts = [];
      process.nextTick(flush, this);
    }
    this.#texts.push(text);
    this.#characters += text.length;
  }

  /** Writes the texts of this tick now: nothing may follow a close. */
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
