import type { Duplex } from "node:stream";
import type { CloseCode } from "relay-protocol/wire/close-codes.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type WebSocket from "ws";
import type { ReadPause } from "../throttle/read-pause.ts";

/** Header bytes of a frame, by the length of its text. Source: RFC 6455, section 5.2. */
const SHORT_HEADER = 2;
const MEDIUM_HEADER = 4;
const LONG_HEADER = 10;
const FINAL_TEXT = 0x81;

/** One unmasked text frame for each text. Source: RFC 6455, section 5.2. */
export function framed(texts: readonly string[]): Buffer {
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

/** The end of one connection: the close frame, the bytes that are read after it, and the end of the socket. */
export class CloseHandshake {
  readonly #socket: WebSocket;
  readonly #readPause: ReadPause;
  /** Undefined if the client or ws ended the connection. */
  readonly code: CloseCode | undefined;
  #bytes = 0;

  constructor(socket: WebSocket, readPause: ReadPause, code: CloseCode | undefined) {
    this.#socket = socket;
    this.#readPause = readPause;
    this.code = code;
  }

  /** Writes the close frame, and reads again because ws waits for the client's answer. */
  sendClose(): void {
    if (this.code !== undefined) this.#socket.close(this.code.code, this.code.reason);
    this.#readPause.resumeAll();
  }

  /** Destroys the socket after a second, so that the close frame arrives before a reset. May be called again. */
  disconnectSoon(): void {
    setTimeout(() => this.#socket.terminate(), CONNECTION_LIMITS.closingGraceMs).unref();
  }

  /**
   * Counts bytes that came after the close frame. If a client keeps sending, the pod stops reading it: a closed
   * connection must not cost more than an open connection. The socket stays open, because the client may still read the
   * close frame.
   */
  count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > CONNECTION_LIMITS.closingBytes) this.#readPause.pause("closing");
  }
}

/** Gets the events of a websocket and of the stream under it. */
export interface SocketListener {
  message(data: Buffer, isBinary: boolean): void;
  ping(data: Buffer): void;
  pong(): void;
  /** A chunk came from the stream. The listener must pass it to ws. */
  data(chunk: Buffer): void;
  /** The socket broke, or a frame was invalid. ws closes the socket itself, with the code that RFC 6455 requires. */
  failed(): void;
  /** The socket was closed. @param code from the client or ws. */
  closed(code: number): void;
}

/** The property of a socket and its stream that holds their listener. */
const LISTENER = Symbol("listener");

/**
 * Event handlers that all sockets share, with the socket as `this`. A closure for each socket would take too much
 * memory.
 */
const SOCKET_EVENTS = {
  message(this: WebSocket, data: Buffer, isBinary: boolean) {
    listenerOf(this).message(data, isBinary);
  },
  ping(this: WebSocket, data: Buffer) {
    listenerOf(this).ping(data);
  },
  pong(this: WebSocket) {
    listenerOf(this).pong();
  },
  error(this: WebSocket) {
    listenerOf(this).failed();
  },
  close(this: WebSocket, code: number) {
    listenerOf(this).closed(code);
  },
};

/** Replaces the listener of ws. The listener of ws would handle every frame of a chunk at once. */
function data(this: Duplex, chunk: Buffer): void {
  listenerOf(this).data(chunk);
}

/** @param stream the stream under the socket. */
export function listenTo(socket: WebSocket, stream: Duplex, listener: SocketListener): void {
  Object.assign(socket, { [LISTENER]: listener });
  Object.assign(stream, { [LISTENER]: listener });
  const { message, ping, pong, error, close } = SOCKET_EVENTS;
  socket.on("message", message).on("ping", ping).on("pong", pong).on("error", error).on("close", close);
  stream.removeAllListeners("data").on("data", data);
}

function listenerOf(socket: WebSocket | Duplex): SocketListener {
  return (socket as unknown as { [LISTENER]: SocketListener })[LISTENER];
}
