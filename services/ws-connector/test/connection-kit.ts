import { EventEmitter, once } from "node:events";
import type { AddressInfo } from "node:net";
import { PassThrough } from "node:stream";
import { afterEach, beforeEach, jest } from "@jest/globals";
import { announcedLimits } from "relay-protocol/contract/frames.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { WebSocket, WebSocketServer } from "ws";
import { until } from "../../../test/support/until.ts";
import { Connection, type ConnectionContext, type ConnectionEvents } from "../src/connection/connection.ts";
import { OutboxBudget } from "../src/connection/outbox.ts";
import { FairScheduler } from "../src/throttle/fair-scheduler.ts";
import { PrincipalRates, TokenBuckets } from "../src/throttle/rates.ts";

export const OUTBOX_BYTES = 65_536;
/** How long ws waits for the client's answer to a close. */
export const CLOSE_TIMEOUT_MS = 4 * CONNECTION_LIMITS.closingGraceMs;
export const ADDRESS_COUNTS = { open: 1, unregistered: 1, opened: 1 };

/** A connection over a real socket, anew for each test; the client answers pings only when it is told to. */
export class ConnectionKit {
  declare server: WebSocketServer;
  declare client: WebSocket;
  declare socket: WebSocket;
  declare context: ConnectionContext;
  declare connection: Connection;
  declare outboxBudget: OutboxBudget;
  /** What the connection told its pod, and the texts that it took in. */
  declare reported: string[];

  async start(): Promise<void> {
    // The types of ws do not know them.
    const closing: object = { closeTimeout: CLOSE_TIMEOUT_MS, autoPong: false };
    this.server = new WebSocketServer({ host: "127.0.0.1", port: 0, ...closing });
    await once(this.server, "listening");
    const connected = once(this.server, "connection");
    const { port } = this.server.address() as AddressInfo;
    this.client = new WebSocket(`ws://127.0.0.1:${port}`, { autoPong: false });
    const [socket, req] = await connected;
    this.socket = socket;
    this.reported = [];
    this.outboxBudget = new OutboxBudget({ outboxBytes: OUTBOX_BYTES, outboxTotal: 0 });
    this.context = contextOf(this.outboxBudget, this.reported);
    const options = { id: "con_1", socket, stream: req.socket, addressCounts: ADDRESS_COUNTS };
    this.connection = new Connection(this.context, options);
    this.connection.open();
    await once(this.client, "message");
  }

  async stop(): Promise<void> {
    this.client.terminate();
    await until("the connection has ended", () => this.reported.includes("closed"));
    this.server.close();
  }
}

export function useConnection(): ConnectionKit {
  const kit = new ConnectionKit();
  beforeEach(() => kit.start());
  afterEach(async () => {
    jest.useRealTimers();
    await kit.stop();
  });
  return kit;
}

function contextOf(outboxBudget: OutboxBudget, reported: string[]): ConnectionContext {
  const events: ConnectionEvents = {
    text: (receiver, text) => {
      reported.push(text);
      receiver.allAnswered();
    },
    registered: () => reported.push("registered"),
    refused: (code) => reported.push(code),
    limitReached: (limit) => reported.push(limit),
    congestionChanged: () => reported.push("congestion"),
    closing: () => reported.push("closing"),
    closed: () => reported.push("closed"),
  };
  const throttle = {
    envelopes: new TokenBuckets(2, 10),
    bytes: new TokenBuckets(0, 0),
    principals: new PrincipalRates(0, 0),
    principalBytes: new PrincipalRates(0, 0),
    scheduler: new FairScheduler(),
    slowDownNotice: "",
  };
  const greeting = { limits: announcedLimits({ envelopesPerSecond: 2, bytesPerSecond: 0 }) };
  return { throttle, outboxBudget, greeting, events };
}

/** A websocket over which nothing goes: what it hears is emitted by hand. */
export function fakeSocket(): { readonly socket: WebSocket; readonly stream: PassThrough } {
  const states = { OPEN: 1, readyState: 1 };
  const receiver = { _receiver: { writable: true, write: () => true, _loop: true } };
  const methods = { pause: () => {}, resume: () => {}, close: () => {}, terminate: () => {} };
  const socket = Object.assign(new EventEmitter(), states, methods, receiver) as unknown as WebSocket;
  return { socket, stream: new PassThrough() };
}
