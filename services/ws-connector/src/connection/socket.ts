import type { Duplex } from "node:stream";
import type { CloseCode } from "relay-protocol/wire/close-codes.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type WebSocket from "ws";
import type { ReadPause } from "../throttle/read-pause.ts";

/** Bytes of a frame's header, by the length of its text. Source: RFC 6455, section 5.2. */
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

/** The end of one connection: its close frame, how much is read behind that frame, and when the socket is destroyed. */
export class CloseHandshake {
  readonly #socket: WebSocket;
  readonly #readPause: ReadPause;
  /** Undefined when the client or ws ended the connection. */
  readonly code: CloseCode | undefined;
  #bytes = 0;

  constructor(socket: WebSocket, readPause: ReadPause, code: CloseCode | undefined) {
    this.#socket = socket;
    this.#readPause = readPause;
    this.code = code;
  }

  /** Writes the close frame, and reads again: ws waits for the client's answer. */
  sendClose(): void {
    if (this.code !== undefined) this.#socket.close(this.code.code, this.code.reason);
    this.#readPause.resumeAll();
  }

  /** Destroys the socket after a second, so that the close frame arrives before a reset. May be called again. */
  disconnectSoon(): void {
    setTimeout(() => this.#socket.terminate(), CONNECTION_LIMITS.closingGraceMs).unref();
  }

  /**
   * Counts bytes that came behind the close frame. A client that goes on sending is no longer read for its answer: a closed
   * connection must not cost more than an open one. The socket stays open, since the client may still read the close frame.
   */
  count(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes > CONNECTION_LIMITS.closingBytes) this.#readPause.pause("closing");
  }
}

/** What is told of a websocket and of the stream under it. */
export interface SocketListener {
  message(data: Buffer, isBinary: boolean): void;
  ping(data: Buffer): void;
  pong(): void;
  /** A chunk came from the stream, for the listener to have ws look at it. */
  data(chunk: Buffer): void;
  /** The socket broke, or a frame was invalid: ws closes it by itself, with the code that RFC 6455 asks for. */
  failed(): void;
  /** The socket was closed. @param code of the client, or of ws. */
  closed(code: number): void;
}

/** The property of a socket and its stream that holds who listens to them. */
const LISTENER = Symbol("listener");

/** What each socket is listened to with, called with the socket as `this`: a pod has very many, and a closure for each would be more. */
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

/** In the place of the listener of ws, which looks at all that comes at once. */
function data(this: Duplex, chunk: Buffer): void {
  listenerOf(this).data(chunk);
}

/** @param stream the one under the socket. */
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
