import { EventEmitter, once } from "node:events";
import type { AddressInfo } from "node:net";
import { Duplex } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { WebSocket, WebSocketServer } from "ws";
import { until } from "../../../test/support/until.ts";
import { Connection, type ConnectionEvents, type ConnectionTerms } from "../src/connection.ts";
import { TokenBuckets } from "../src/token-bucket.ts";

let server: WebSocketServer;
let client: WebSocket;
let socket: WebSocket;
let connection: Connection;
let terms: ConnectionTerms;
let told: string[];
const caller = { open: 1, unregistered: 1, opened: 1 };

/** A connection over a real socket; the client answers pings only when it is told to. */
beforeEach(async () => {
  server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  const connected = once(server, "connection");
  client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, { autoPong: false });
  const [accepted, req] = await connected;
  socket = accepted;
  told = [];
  const events: ConnectionEvents = {
    text: (_, text) => told.push(text),
    proven: () => told.push("proven"),
    struck: (limit) => told.push(limit),
    closing: () => told.push("closing"),
    closed: () => told.push("closed"),
  };
  terms = { allowance: new TokenBuckets(2, 10), outboxBytes: 65_536, events };
  connection = new Connection(terms, { id: "con_1", socket, stream: req.socket, caller });
  connection.open();
  await once(client, "message");
});

afterEach(async () => {
  client.terminate();
  await until("the connection has ended", () => told.includes("closed"));
  server.close();
});

async function pingAndWait(): Promise<void> {
  const arrived = once(client, "ping");
  connection.ping();
  await arrived;
}

describe("pings", () => {
  test("that are unanswered twice end the connection with 1013 at the third", async () => {
    await pingAndWait();
    await pingAndWait();
    expect(connection.isClosing).toBe(false);
    connection.ping();
    const [code] = await once(client, "close");
    expect(code).toBe(1013);
  });

  test.each([
    ["a pong", "pong", () => client.pong()],
    ["any text", "message", () => client.send("text")],
  ])("are answered by %s", async (_what, event, answer) => {
    for (let n = 0; n < 3; n += 1) {
      await pingAndWait();
      await pingAndWait();
      const heard = once(socket, event);
      answer();
      await heard;
    }
    expect(connection.isClosing).toBe(false);
  });

  test("are not sent once the connection closes", async () => {
    connection.close({ code: 4409, reason: "superseded", reconnect: false });
    for (let n = 0; n < 5; n += 1) connection.ping();
    const [code] = await once(client, "close");
    expect(code).toBe(4409);
  });
});

test("The end is told once, before the socket is gone, and nothing is sent or heard after it", async () => {
  connection.close({ code: 1008, reason: "policy", reconnect: false });
  expect(told).toEqual(["closing"]);
  expect(connection.send("late")).toBe(false);
  connection.close({ code: 1001, reason: "going away", reconnect: true });
  client.send("late");
  const [code, reason] = await once(client, "close");
  expect([code, String(reason)]).toEqual([1008, "policy"]);
  await until("the connection has ended", () => told.includes("closed"));
  expect(told).toEqual(["closing", "closed"]);
});

test("Connections share their listeners", () => {
  const other = Object.assign(new EventEmitter(), { OPEN: 1 }) as unknown as WebSocket;
  const another = new Connection(terms, { id: "con_2", socket: other, stream: new Duplex(), caller });
  another.open();
  for (const event of ["message", "ping", "pong", "error", "close"]) {
    expect(other.listenerCount(event)).toBe(1);
    expect(socket.listeners(event)).toContain(other.listeners(event)[0]);
  }
  other.emit("close", 1006);
});

test("Pings and envelopes of a client draw on one allowance", async () => {
  // A connection without a valid envelope would be closed with the same code later.
  connection.noteValid();
  const burst = Array.from({ length: 9 }, () => connection.takeToken());
  expect(burst).toEqual(Array(9).fill(0));
  client.ping();
  client.ping();
  const [code] = await once(client, "close");
  expect(code).toBe(1008);
});
