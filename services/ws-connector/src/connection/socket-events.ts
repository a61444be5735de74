import type { Duplex } from "node:stream";
import type WebSocket from "ws";

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
