import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, test } from "@jest/globals";
import { WebSocketServer } from "ws";
import { MAX_RECEIVED_CHARACTERS } from "../src/limits.ts";
import { Socket } from "../src/socket.ts";

const HELLO = JSON.stringify({ frame: "hello" });
const LARGEST = HELLO.padEnd(MAX_RECEIVED_CHARACTERS);

/** What is read of a relay that sends these texts and closes, and with which code it ends. */
async function readOf(...texts: string[]): Promise<{ read: string[]; code: number }> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  server.on("connection", (client) => {
    for (const text of texts) client.send(text);
    client.close(4400);
  });
  const read: string[] = [];
  const closed = Promise.withResolvers<number>();
  const socket = new Socket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    frame: ({ frame }) => read.push(frame),
    closed: closed.resolve,
  });
  socket.open();
  const code = await closed.promise;
  await socket.close();
  server.close();
  return { read, code };
}

test("Frames are read up to their bound", async () => {
  expect(await readOf(LARGEST, HELLO)).toEqual({ read: ["hello", "hello"], code: 4400 });
});

test("A frame that is larger ends the connection, and nothing after it is read", async () => {
  expect(await readOf(HELLO, `${LARGEST} `, HELLO)).toEqual({ read: ["hello"], code: 1006 });
});
