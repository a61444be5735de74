import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import type { WebSocket } from "ws";

/** A websocket over which nothing goes: what it hears is emitted by hand. */
export function fakeSocket(): { readonly socket: WebSocket; readonly stream: PassThrough } {
  const states = { OPEN: 1, readyState: 1 };
  const receiver = { _receiver: { writable: true, write: () => true, _loop: true } };
  const methods = { pause: () => {}, resume: () => {}, close: () => {}, terminate: () => {} };
  const socket = Object.assign(new EventEmitter(), states, methods, receiver) as unknown as WebSocket;
  return { socket, stream: new PassThrough() };
}
