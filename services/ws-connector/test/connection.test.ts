import { once } from "node:events";
import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { until } from "../../../test/support/until.ts";
import { Connection } from "../src/connection/connection.ts";
import { PrincipalRates, TokenBuckets } from "../src/throttle/rates.ts";
import { ADDRESS_COUNTS, fakeSocket, useConnection } from "./connection-kit.ts";

const kit = useConnection();

const clientStream = () => (kit.client as unknown as { _socket: Socket })._socket;
const CHECKS_A_PING = CONNECTION_LIMITS.pingIntervalMs / CONNECTION_LIMITS.silenceCheckMs;
const checkSilence = (times: number) => {
  for (let n = 0; n < times; n += 1) kit.connection.checkSilence();
};

/** Of a client that is silent from now on. */
async function untilPinged(): Promise<void> {
  // What the client sent last may still be on its way to be taken in: until then the socket is not read.
  await until("the socket is read", () => !kit.socket.isPaused);
  const arrived = once(kit.client, "ping");
  checkSilence(CHECKS_A_PING + 1);
  await arrived;
}

describe("pings", () => {
  const pings: unknown[] = [];
  beforeEach(() => {
    pings.length = 0;
    kit.client.on("ping", (data) => pings.push(data));
  });

  test("go to no client that was heard from within the interval", async () => {
    for (let n = 0; n < 3; n += 1) {
      checkSilence(CHECKS_A_PING);
      const heard = once(kit.socket, "message");
      kit.client.send("text");
      await heard;
    }
    // What was sent before has arrived with it.
    kit.connection.send("last");
    await once(kit.client, "message", { signal: AbortSignal.timeout(5000) });
    expect(pings).toEqual([]);
  });

  test("that are unanswered twice end the connection with 1013 when the third would be due", async () => {
    await untilPinged();
    const second = once(kit.client, "ping");
    checkSilence(CHECKS_A_PING);
    await second;
    checkSilence(CHECKS_A_PING - 1);
    expect(kit.connection.isClosing).toBe(false);
    checkSilence(1);
    const [code] = await once(kit.client, "close");
    expect([code, pings.length]).toEqual([1013, 2]);
  });

  test.each([
    ["a pong", "pong", () => kit.client.pong()],
    ["any text", "message", () => kit.client.send("text")],
    ["a ping", "ping", () => kit.client.ping()],
  ])("are answered by %s", async (_what, event, answer) => {
    for (let n = 0; n < 3; n += 1) {
      await untilPinged();
      checkSilence(CHECKS_A_PING);
      const heard = once(kit.socket, event);
      answer();
      await heard;
    }
    expect(kit.connection.isClosing).toBe(false);
  });

  test("are not due of a client that is not read", () => {
    checkSilence(CHECKS_A_PING);
    kit.connection.pause("rate");
    checkSilence(5 * CHECKS_A_PING);
    kit.connection.resume("rate");
    checkSilence(2 * CHECKS_A_PING);
    expect(kit.connection.isClosing).toBe(false);
  });

  test("are not sent once the connection closes", async () => {
    kit.connection.close({ code: 4409, reason: "superseded" });
    checkSilence(5 * CHECKS_A_PING);
    const [code] = await once(kit.client, "close");
    expect([code, pings]).toEqual([4409, []]);
  });
});

describe("a register that is answered after the time for it is over", () => {
  let late: Connection;

  beforeEach(() => {
    jest.useFakeTimers();
    const { socket, stream } = fakeSocket();
    const unanswered = { ...kit.context.events, text: () => kit.reported.push("taken in") };
    late = new Connection(
      { ...kit.context, events: unanswered },
      { id: "con_2", socket, stream, addressCounts: ADDRESS_COUNTS },
    );
    late.open();
    socket.emit("message", Buffer.from("register"), false);
    jest.advanceTimersByTime(CONNECTION_LIMITS.registerWithinMs + 1);
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test("does not have its connection closed while it is under way, nor when it turns out valid", () => {
    expect(kit.reported).toEqual(["taken in"]);
    late.noteValid("key:alice-1", "agent://alice");
    late.allAnswered();
    jest.advanceTimersByTime(CONNECTION_LIMITS.registerWithinMs);
    expect([late.isClosing, kit.reported]).toEqual([false, ["taken in", "registered"]]);
  });

  test("has it closed when it turns out invalid", () => {
    late.allAnswered();
    jest.advanceTimersByTime(CONNECTION_LIMITS.registerWithinMs);
    expect([late.isClosing, kit.reported]).toEqual([
      true,
      ["taken in", "register_timeout", "register_within", "closing"],
    ]);
  });
});

test("Refusals in a row that end a connection are counted by that limit, once", () => {
  kit.connection.noteValid("key:alice-1", "agent://alice");
  for (let n = 0; n <= CONNECTION_LIMITS.maxRefusalsInARow; n += 1) kit.connection.noteRefusal();
  expect(kit.reported.filter((what) => what === "refusals_in_a_row")).toHaveLength(1);
  expect(kit.connection.isClosing).toBe(true);
});

test("Connections share their listeners", () => {
  const { socket: other, stream } = fakeSocket();
  const another = new Connection(kit.context, { id: "con_2", socket: other, stream, addressCounts: ADDRESS_COUNTS });
  another.open();
  for (const event of ["message", "ping", "pong", "error", "close"]) {
    expect(other.listenerCount(event)).toBe(1);
    expect(kit.socket.listeners(event)).toContain(other.listeners(event)[0]);
  }
  other.emit("close", 1006);
});

describe("what comes in one read", () => {
  const pings = (count: number) => Array.from({ length: count }, (_, n) => [0x89, 0x81, 0, 0, 0, 0, 97 + n]);
  const pongs: string[] = [];
  beforeEach(() => {
    pongs.length = 0;
    kit.client.on("pong", (data) => pongs.push(String(data)));
    kit.connection.noteValid("key:alice-1", "agent://alice");
  });

  test("is answered by one pong, to the last ping, and the next by another", async () => {
    for (const [count, last] of [
      [3, "c"],
      [2, "b"],
    ] as const) {
      const answered = once(kit.client, "pong");
      clientStream().write(Buffer.from(pings(count).flat()));
      expect(String((await answered)[0])).toBe(last);
    }
    kit.connection.send("after them");
    await once(kit.client, "message");
    expect(pongs).toEqual(["c", "b"]);
  });
});

test("A chunk is not looked at while the bytes of its key are used up", async () => {
  const principalBytes = new PrincipalRates(1000, 1);
  principalBytes.take("key:alice-1", performance.now(), 500);
  Object.assign(kit.context.throttle, { principalBytes, envelopes: new TokenBuckets(0, 0) });
  let frames = 0;
  kit.socket.on("message", () => (frames += 1));
  kit.connection.noteValid("key:alice-1", "agent://alice");
  clientStream().write(Buffer.alloc(6 * 1000).fill(Buffer.of(0x81, 0x80, 0, 0, 0, 0)));
  await until("it waits", () => kit.reported.includes("key_bytes"));
  expect([frames, kit.socket.isPaused]).toEqual([0, true]);
  await until("it is looked at", () => frames === 1000);
});

test("An agent of an issuer that takes itself over waits on its next connection for what it sent on the last", () => {
  const principals = new PrincipalRates(1, 3);
  Object.assign(kit.context.throttle, { principals, envelopes: new TokenBuckets(0, 0) });
  const connect = (agent: string) => {
    const { socket, stream } = fakeSocket();
    const options = { id: "con_2", socket, stream, addressCounts: ADDRESS_COUNTS };
    const connection = new Connection(kit.context, options);
    connection.open();
    connection.noteValid("issuer:acme", agent);
    for (let n = 0; n < 3; n += 1) socket.emit("message", Buffer.from(`of ${agent}`), false);
    return connection;
  };
  const connections = ["agent://acme.eve", "agent://acme.eve", "agent://acme.bob"].map(connect);
  const taken = kit.reported.filter((reported) => reported.startsWith("of "));
  expect(taken).toEqual([...Array(3).fill("of agent://acme.eve"), ...Array(3).fill("of agent://acme.bob")]);
  for (const connection of connections) connection.closeNow(CLOSE_CODES.goingAway);
});
