import { spawn } from "node:child_process";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { fileURLToPath } from "node:url";
import { expect, test } from "@jest/globals";
import { ENVELOPE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { WebSocketServer } from "ws";
import {
  decidedSessionsNotice,
  deliverFrame,
  pendingSessionsNotice,
} from "../../services/ws-connector/src/connection/frames.ts";
import { until } from "../../test/support/until.ts";
import { MAX_RECEIVED_BYTES } from "../src/limits.ts";
import { Socket } from "../src/socket.ts";
import { testAgent } from "./kit.ts";

const EXITING_AGENT = fileURLToPath(new URL("exiting-agent.ts", import.meta.url));

const HELLO = JSON.stringify({ frame: "hello" });
const LARGEST = HELLO.padEnd(MAX_RECEIVED_BYTES);

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
  const socket = new Socket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, false, {
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

test("An attempt that fails at once ends with its cause, and not the process with it", async () => {
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const socket = new Socket("ws://255.255.255.255/ws", false, {
    frame: () => {},
    closed: (_, failure) => resolve(failure),
  });
  // As the timer of a reconnect does.
  setTimeout(() => socket.open(), 1);
  expect(await promise).toMatchObject({ code: expect.stringMatching(/^E/) });
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
  expect(Buffer.byteLength(frame)).toBeLessThanOrEqual(MAX_RECEIVED_BYTES);
});

/** A relay that takes the register, and from then on reads nothing. */
async function silentRelay(): Promise<WebSocketServer> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await once(server, "listening");
  server.on("connection", (client) => {
    client.send(JSON.stringify({ frame: "hello", server_time: Date.now(), limits: {} }));
    client.on("message", (text) => {
      client.send(JSON.stringify({ frame: "ack", envelope_id: JSON.parse(String(text)).id }));
      client.pause();
    });
  });
  return server;
}

test("A program whose connector is closed exits, although the relay answers nothing any more", async () => {
  const server = await silentRelay();
  const { agent, key } = testAgent("alice");
  const url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const program = spawn(process.execPath, [EXITING_AGENT, url, agent, JSON.stringify(key)], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  try {
    await until("it has exited", () => program.exitCode !== null);
    expect(program.exitCode).toBe(0);
  } finally {
    program.kill("SIGKILL");
    for (const client of server.clients) client.terminate();
    server.close();
  }
});
