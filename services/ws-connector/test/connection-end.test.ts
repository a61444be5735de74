import { once } from "node:events";
import type { Socket } from "node:net";
import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { fakeTimers } from "../../../test/support/time.ts";
import { until } from "../../../test/support/until.ts";
import { CLOSE_TIMEOUT_MS, type ConnectionKit, OUTBOX_BYTES, useConnection } from "./connection-kit.ts";

/** How a connection ends: what is read before its close, and what of it stays. */

const { closingBytes, closingGraceMs } = CONNECTION_LIMITS;
/** Timers of the relay and of ws fire when the test says so. */
beforeEach(() => fakeTimers());
const kit = useConnection();
const TEXT = "x".repeat(8192);

/** Sends until the kernel takes no more and so many bytes wait. @returns how many texts. */
function fill({ connection, outboxBudget }: ConnectionKit, bytes: number): number {
  let sent = 0;
  while (outboxBudget.bytes <= bytes && connection.send(TEXT)) sent += 1;
  return sent;
}

/** @returns how many texts the client has read since. */
function countReceived({ client }: ConnectionKit): () => number {
  let received = 0;
  client.on("message", () => {
    received += 1;
  });
  return () => received;
}

/** Below a websocket. */
const streamOf = (socket: unknown) => (socket as { _socket: Socket })._socket;

/** Until the kernel takes no more. */
function fillWithPongs({ socket }: ConnectionKit): void {
  const stream = streamOf(socket);
  while (stream.writableLength === 0) socket.pong("x".repeat(125));
}

test("The end is reported once, before the socket is gone, and nothing is sent or heard after it", async () => {
  kit.connection.close({ code: 1008, reason: "policy" });
  expect(kit.reported).toEqual(["closing"]);
  expect(kit.connection.send("late")).toBe(false);
  kit.connection.close({ code: 1001, reason: "going away" });
  kit.client.send("late");
  const [code, reason] = await once(kit.client, "close");
  expect([code, String(reason)]).toEqual([1008, "policy"]);
  await until("the connection has ended", () => kit.reported.includes("closed"));
  expect(kit.reported).toEqual(["closing", "closed"]);
});

describe("a client that does not read", () => {
  beforeEach(() => kit.client.pause());

  test("is closed with 1013 when more than four outboxes wait, and may still read what waited", async () => {
    fill(kit, 4 * OUTBOX_BYTES);
    expect(kit.connection.isClosing).toBe(true);
    expect(kit.reported).toEqual(["congestion", "outbox", "closing"]);
    expect([kit.outboxBudget.bytes, kit.outboxBudget.congested]).toEqual([0, 0]);
    kit.client.resume();
    const [code, reason] = await once(kit.client, "close");
    expect([code, String(reason)]).toEqual([1013, "slow consumer"]);
  });

  test("is disconnected when it reads nothing of what was sent before its close", async () => {
    fill(kit, 20_000);
    kit.connection.close(CLOSE_CODES.superseded);
    for (let n = 0; n < 10; n += 1) kit.outboxBudget.check();
    expect([kit.socket.readyState, kit.outboxBudget.bytes > 0]).toEqual([kit.socket.OPEN, true]);
    kit.outboxBudget.check();
    expect(kit.outboxBudget.bytes).toBe(0);
    jest.advanceTimersByTime(closingGraceMs);
    await until("the socket is gone", () => kit.reported.includes("closed"));
  });

  test("is disconnected soon where its close may not wait, and whoever waits for its end is told", async () => {
    fill(kit, 20_000);
    kit.connection.close(CLOSE_CODES.superseded);
    const gone = kit.connection.gone();
    kit.connection.closeNow(CLOSE_CODES.goingAway);
    expect(kit.outboxBudget.bytes).toBe(0);
    jest.advanceTimersByTime(closingGraceMs);
    await gone;
    expect(kit.reported).toContain("closed");
    await kit.connection.gone();
  });

  test("has the pongs count that it does not read", async () => {
    fillWithPongs(kit);
    expect(kit.outboxBudget.bytes).toBe(0);
    const heard = once(kit.socket, "ping");
    kit.client.ping();
    await heard;
    expect(kit.outboxBudget.bytes).toBeGreaterThan(0);
  });
});

describe("a client that does not read while its connection is closed", () => {
  beforeEach(() => kit.client.pause());

  test("reads what was sent before its close, and the close, however late it begins", async () => {
    const sent = fill(kit, 20_000);
    const received = countReceived(kit);
    kit.connection.close(CLOSE_CODES.superseded);
    expect([kit.connection.send(TEXT), kit.connection.isClosing]).toEqual([false, true]);
    // Time in which ws would let the socket go, had it written the close.
    jest.advanceTimersByTime(2 * CLOSE_TIMEOUT_MS);
    kit.client.resume();
    const [code] = await once(kit.client, "close");
    expect([code, received(), kit.outboxBudget.bytes]).toEqual([4409, sent, 0]);
  });

  test("gets all of it, and the close, also when it sends more meanwhile than is read of a closing connection", async () => {
    const sent = fill(kit, 20_000);
    const received = countReceived(kit);
    kit.connection.close(CLOSE_CODES.superseded);
    for (let n = 0; n < 5; n += 1) kit.client.send("y".repeat(closingBytes));
    const stream = streamOf(kit.socket);
    await until("no more is read", () => stream.isPaused());
    jest.advanceTimersByTime(2 * CLOSE_TIMEOUT_MS);
    const { bytesRead } = stream;
    const closed = once(kit.client, "close");
    kit.client.resume();
    await until("the client has learnt of it", () => kit.client.readyState === kit.client.CLOSING);
    jest.advanceTimersByTime(CLOSE_TIMEOUT_MS);
    const [code] = await closed;
    expect([code, received()]).toEqual([4409, sent]);
    expect(bytesRead).toBeLessThan(2 * closingBytes);
  });
});

describe("a client that ended its side without a close frame, and does not read", () => {
  beforeEach(async () => {
    kit.client.pause();
    while (kit.outboxBudget.bytes === 0) kit.connection.send(TEXT);
    const raw = streamOf(kit.client);
    raw.end();
    await until("the end came in", () => kit.connection.isClosing);
  });

  test("loses its agents when it is looked at next", () => {
    kit.connection.checkSilence();
    expect(kit.reported).toContain("closing");
  });

  test("is disconnected when nothing drains", async () => {
    for (let n = 0; n < 11; n += 1) kit.outboxBudget.check();
    jest.advanceTimersByTime(closingGraceMs);
    await until("the socket is gone", () => kit.reported.includes("closed"));
  });
});

test.each([
  ["binary frames", 0x82],
  ["pings", 0x89],
  ["texts", 0x81],
])(
  "A chunk full of %s is passed over once the connection of a client that never registered is closed for it",
  async (_, head) => {
    const raw = streamOf(kit.client);
    let frames = 0;
    for (const event of ["message", "ping"]) kit.socket.on(event, () => (frames += 1));
    raw.write(Buffer.concat(Array.from({ length: 10_000 }, () => Buffer.of(head, 0x80, 0, 0, 0, 0))));
    const [code] = await once(kit.client, "close");
    expect([1003, 1008]).toContain(code);
    expect(frames).toBeLessThan(2 * CONNECTION_LIMITS.unregisteredFrames);
  },
);

test("An invalid frame behind a close ends the connection, and whoever waits for its end is told", async () => {
  kit.connection.noteValid("key:alice-1", "agent://alice");
  const gone = kit.connection.gone();
  kit.connection.close(CLOSE_CODES.goingAway);
  const raw = streamOf(kit.client);
  raw.write(Buffer.of(0xff, 0x80, 0, 0, 0, 0));
  await gone;
});

test("A client that closes loses its agents then, not when the socket is gone", async () => {
  const raw = streamOf(kit.client);
  // It does not read the answer to its close, so that the socket stays.
  kit.client.pause();
  raw.write(Buffer.from([0x88, 0x80, 0, 0, 0, 0]));
  await until("the end is reported", () => kit.reported.includes("closing"));
  expect(kit.reported).toEqual(["closing"]);
  expect(kit.connection.send("late")).toBe(false);
});

test("A client whose close came behind a text that paused it loses its agents when the close is read", async () => {
  kit.connection.noteValid("key:alice-1", "agent://alice");
  const raw = streamOf(kit.client);
  // It does not read the answer to its close, so that the socket stays.
  kit.client.pause();
  const paused = new Promise<void>((resolve) => {
    kit.socket.once("message", () => resolve(kit.connection.pause("full_intake")));
  });
  raw.write(Buffer.from([0x81, 0x81, 0, 0, 0, 0, 0x78, 0x88, 0x80, 0, 0, 0, 0]));
  await paused;
  expect(kit.connection.isClosing).toBe(false);
  kit.connection.resume("full_intake");
  await until("its close is read", () => kit.connection.isClosing);
  expect(kit.reported.at(-1)).toBe("closing");
});

describe("a client that does not answer its close", () => {
  test("has the time for it once it is registered, and reads all until then", async () => {
    kit.connection.noteValid("key:alice-1", "agent://alice");
    kit.client.pause();
    kit.connection.send("promised");
    kit.connection.close(CLOSE_CODES.superseded);
    jest.advanceTimersByTime(2 * closingGraceMs);
    expect(kit.socket.readyState).toBe(kit.socket.CLOSING);
    expect(streamOf(kit.socket).destroyed).toBe(false);
    const received = once(kit.client, "message");
    kit.client.resume();
    const [[promised], [code]] = await Promise.all([received, once(kit.client, "close")]);
    expect([String(promised), code]).toEqual(["promised", 4409]);
  });

  test("is sent it at once where only pongs wait, which nobody promised", async () => {
    kit.connection.noteValid("key:alice-1", "agent://alice");
    kit.client.pause();
    fillWithPongs(kit);
    kit.connection.close(CLOSE_CODES.superseded);
    expect(kit.socket.readyState).toBe(kit.socket.CLOSING);
    kit.client.resume();
    const [code] = await once(kit.client, "close");
    expect(code).toBe(4409);
  });

  test("has a second for it while it is not registered", async () => {
    kit.client.pause();
    kit.connection.close(CLOSE_CODES.policy);
    jest.advanceTimersByTime(closingGraceMs - 1);
    expect(streamOf(kit.socket).destroyed).toBe(false);
    jest.advanceTimersByTime(1);
    expect(streamOf(kit.socket).destroyed).toBe(true);
  });

  test("and goes on sending is read no further, and still learns why", async () => {
    kit.connection.noteValid("key:alice-1", "agent://alice");
    const [raw, stream] = [streamOf(kit.client), streamOf(kit.socket)];
    kit.connection.close(CLOSE_CODES.superseded);
    const readBefore = stream.bytesRead;
    const flood = Buffer.alloc(1_000_000).fill(Buffer.from([0x89, 0x80, 0, 0, 0, 0]));
    const closed = once(kit.client, "close");
    for (let n = 0; n < 20; n += 1) raw.write(flood);
    let [read, unchanged] = [0, 0];
    await until("no more is read", () => {
      unchanged = read === stream.bytesRead ? unchanged + 1 : 0;
      read = stream.bytesRead;
      return stream.isPaused() && unchanged === 5;
    });
    await until("the client has learnt of it", () => kit.client.readyState === kit.client.CLOSING);
    jest.advanceTimersByTime(CLOSE_TIMEOUT_MS);
    const [code] = await closed;
    await until("the connection has ended", () => kit.reported.includes("closed"));
    expect(code).toBe(4409);
    expect(stream.bytesRead - readBefore).toBeLessThan(1_000_000);
  });
});
