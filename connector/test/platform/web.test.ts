import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { WebSocketServer } from "ws";
import { freePort } from "../../../test/support/free-port.ts";
import { MAX_RECEIVED_BYTES } from "../../src/limits.ts";
import { openWebSocket, request } from "../../src/platform/web.ts";

/** What browsers, Deno and Bun have, on Node's classes of the same names. */

let server: Server;
let port: number;

beforeEach(async () => {
  server = createServer((_, answer) => {
    answer.writeHead(302, { location: "/elsewhere", "content-encoding": "gzip" }).end(gzipSync("here"));
  });
  new WebSocketServer({ server }).on("connection", (client) => {
    client.on("message", (text) => {
      client.send(Buffer.from("binary"));
      client.send(String(text));
      client.close(4400);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  ({ port } = server.address() as AddressInfo);
});
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

test("A websocket carries texts, and tells the code of its end", async () => {
  const texts: string[] = [];
  const closed = Promise.withResolvers<number>();
  const socket = openWebSocket(`ws://127.0.0.1:${port}`, true, {
    text: (text) => texts.push(text),
    closed: closed.resolve,
  });
  const greeting = setInterval(() => socket.send("hi"), 5);
  expect(await closed.promise).toBe(4400);
  clearInterval(greeting);
  expect(texts).toEqual(["hi"]);
});

test("A frame that is too large ends a websocket", async () => {
  const texts: string[] = [];
  const closed = Promise.withResolvers<number>();
  const events = { text: (text: string) => texts.push(text.slice(0, 9)), closed: closed.resolve };
  const socket = openWebSocket(`ws://127.0.0.1:${port}`, true, events);
  const sending = setInterval(() => socket.send("x".repeat(MAX_RECEIVED_BYTES + 1)), 5);
  expect([await closed.promise, texts]).toEqual([1006, []]);
  clearInterval(sending);
});

test.each([
  ["that the platform refuses", () => "http://[" as string],
  ["where nothing listens", async () => `ws://127.0.0.1:${await freePort()}`],
])("A websocket %s ends with 1006", async (_, url) => {
  const closed = Promise.withResolvers<number>();
  openWebSocket(await url(), true, { text: () => {}, closed: closed.resolve });
  expect(await closed.promise).toBe(1006);
});

test("A websocket that is cut ends, whatever the other end does", async () => {
  const closed = Promise.withResolvers<number>();
  openWebSocket(`ws://127.0.0.1:${port}`, true, { text: () => {}, closed: closed.resolve }).cut();
  expect(await closed.promise).toBe(1006);
});

test("An answer is decoded, and no redirect is followed", async () => {
  const { status, headers, body } = await request(`http://127.0.0.1:${port}`, true, {}, AbortSignal.timeout(60_000));
  const chunks: Uint8Array[] = [];
  for await (const chunk of body) chunks.push(chunk);
  expect([status, Buffer.concat(chunks).toString(), headers]).toMatchObject([302, "here", { location: "/elsewhere" }]);
});

test("A request that fails tells why, where the platform does", async () => {
  const url = `http://127.0.0.1:${await freePort()}`;
  await expect(request(url, true, {}, AbortSignal.timeout(60_000))).rejects.toMatchObject({ code: "ECONNREFUSED" });
});
