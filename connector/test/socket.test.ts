import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { expect, test } from "@jest/globals";
import { ENVELOPE_LIMITS, SESSION_LIMITS } from "protocol/contract/limits.ts";
import { WebSocketServer } from "ws";
import { decidedSessionsNotice, deliverFrame, pendingSessionsNotice } from "../../services/ws-connector/src/frames.ts";
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

const LONGEST_AGENT = `agent://${"a".repeat(63)}`;
const SESSION_ID = `ses_${"0".repeat(26)}`;
const SIGNED = "x".repeat(ENVELOPE_LIMITS.maxFrameBytes + `,"sig":"${"A".repeat(86)}"`.length);
const pending = { sessionId: SESSION_ID, requester: LONGEST_AGENT, createdAt: 0, expiresAt: 0 };
const decided = { sessionId: SESSION_ID, target: LONGEST_AGENT, status: "approved", decidedAt: 0 } as const;

test.each([
  ["an envelope", deliverFrame(SESSION_ID, SIGNED)],
  ["requests", pendingSessionsNotice(LONGEST_AGENT, Array(SESSION_LIMITS.maxPendingPerTarget).fill(pending))],
  ["decisions", decidedSessionsNotice(LONGEST_AGENT, Array(SESSION_LIMITS.maxDecidedKept).fill(decided))],
])("The largest frame of the relay is within the bound: %s", (_, frame) => {
  expect(Buffer.byteLength(frame)).toBeLessThanOrEqual(MAX_RECEIVED_CHARACTERS);
});
