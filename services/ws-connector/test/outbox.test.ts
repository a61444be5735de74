import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { afterEach, beforeEach, expect, jest, test } from "@jest/globals";
import { WebSocket, WebSocketServer } from "ws";
import { until } from "../../../test/support/until.ts";
import { Outbox } from "../src/outbox.ts";
import { Outboxes } from "../src/outboxes.ts";

let server: WebSocketServer;
let client: WebSocket;
let socket: WebSocket;
let stream: Duplex;
let received: string[];

beforeEach(async () => {
  server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
  await once(server, "listening");
  const connected = once(server, "connection");
  client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
  received = [];
  client.on("message", (data, isBinary) => received.push(isBinary ? "binary" : data.toString()));
  const [accepted, req] = await connected;
  socket = accepted;
  stream = req.socket;
  await until("the client is open", () => client.readyState === client.OPEN);
});

afterEach(async () => {
  client.terminate();
  await once(socket, "close");
  server.close();
});

function outboxOf(): Outbox {
  const owner = { congestionChanged: () => {}, readsTooSlowly: () => {} };
  return new Outbox(owner, new Outboxes({ outboxBytes: 1_048_576, outboxTotal: 0 }), socket, stream);
}

test("Texts of every length, in every script, arrive as they were sent and in their order", async () => {
  const lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000];
  const texts = [...lengths.map((length) => "x".repeat(length)), "ä".repeat(63), "€".repeat(21_846), "🦊".repeat(32)];
  const outbox = outboxOf();
  for (const text of texts) outbox.send(text);
  await until("all have arrived", () => received.length === texts.length);
  expect(received).toEqual(texts);
});

test("What one tick brings leaves in one write", async () => {
  const write = jest.spyOn(stream, "write");
  const outbox = outboxOf();
  for (let n = 0; n < 50; n += 1) outbox.send(`text ${n}`);
  await until("all have arrived", () => received.length === 50);
  expect(write).toHaveBeenCalledTimes(1);
});

test("What waited when the connection is closed arrives before the close, and nothing after it", async () => {
  const closed = once(client, "close");
  const outbox = outboxOf();
  outbox.send("the last word");
  outbox.whenTaken(() => socket.close(4409, "superseded"));
  outbox.send("too late");
  const [code] = await closed;
  expect({ code, received }).toEqual({ code: 4409, received: ["the last word"] });
});

test("A closed outbox waits for nothing", () => {
  const outbox = outboxOf();
  outbox.close();
  let isTold = false;
  outbox.whenTaken(() => {
    isTold = true;
  });
  expect(isTold).toBe(true);
});

test("A tick whose socket began to close meanwhile writes nothing behind the close", async () => {
  const closed = once(client, "close");
  outboxOf().send("overtaken");
  socket.close(1001);
  const [code] = await closed;
  expect({ code, received }).toEqual({ code: 1001, received: [] });
});
