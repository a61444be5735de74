import { once } from "node:events";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import { until } from "../../../test/support/until.ts";
import { Connection } from "../src/connection.ts";
import { PrincipalRates } from "../src/principal-rates.ts";
import { TokenBuckets } from "../src/token-bucket.ts";
import { ADDRESS_COUNTS, fakeSocket, useConnection } from "./connection-kit.ts";

const kit = useConnection();

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

describe("a connection that is not read for two reasons", () => {
  beforeEach(() => {
    kit.connection.pause("full_intake");
    kit.connection.pause("draining");
    kit.client.send("text");
  });

  test("is not read when one of them ends, and is when the other does", async () => {
    kit.connection.resume("full_intake");
    await setImmediate();
    expect(kit.socket.isPaused).toBe(true);
    kit.connection.resume("draining");
    await until("the text is read", () => kit.reported.includes("text"));
  });

  test("is read once it closes, for the client's answer to the close, and not paused again", async () => {
    const closed = once(kit.client, "close");
    kit.connection.close({ code: 1001, reason: "going away" });
    kit.connection.pause("full_intake");
    const [code] = await closed;
    expect([code, kit.socket.isPaused]).toEqual([1001, false]);
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
  const PING = [0x89, 0x81, 0, 0, 0, 0];
  const TEXT = [0x81, 0x81, 0, 0, 0, 0];
  const frames = (count: number, head: readonly number[]) => Array.from({ length: count }, (_, n) => [...head, 97 + n]);
  const stream = () => (kit.client as unknown as { _socket: Socket })._socket;
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
      stream().write(Buffer.from(frames(count, PING).flat()));
      expect(String((await answered)[0])).toBe(last);
    }
    kit.connection.send("after them");
    await once(kit.client, "message");
    expect(pongs).toEqual(["c", "b"]);
  });

  test("waits behind the frame that pauses the connection, whatever it is, and goes on in its order", async () => {
    const chunk = [...frames(12, TEXT), ...frames(1, PING), ...frames(2, TEXT)];
    const first = once(kit.socket, "message");
    stream().write(Buffer.from(chunk.flat()));
    await first;
    // Ten at once, two a second: one more was read, and waits for its token.
    expect([kit.reported.slice(-2), pongs]).toEqual([["j", "envelopes"], []]);
    await once(kit.client, "pong");
    await until("the last has come", () => kit.reported.includes("b"));
  });
});

describe("a chunk of very many frames", () => {
  const EMPTY_TEXTS = Buffer.alloc(6 * 1000).fill(Buffer.of(0x81, 0x80, 0, 0, 0, 0));
  const stream = () => (kit.client as unknown as { _socket: Socket })._socket;
  let frames: number;
  beforeEach(() => {
    frames = 0;
    Object.assign(kit.context.inflow, { envelopes: new TokenBuckets(0, 0) });
    kit.socket.on("message", () => (frames += 1));
    kit.connection.noteValid("key:alice-1", "agent://alice");
  });

  test("is not looked at while the bytes of its key are used up", async () => {
    const principalBytes = new PrincipalRates(1000, 1);
    principalBytes.take("key:alice-1", performance.now(), 500);
    Object.assign(kit.context.inflow, { principalBytes });
    stream().write(EMPTY_TEXTS);
    await until("it waits", () => kit.reported.includes("key_bytes"));
    expect([frames, kit.socket.isPaused]).toEqual([0, true]);
    await until("it is looked at", () => frames === 1000);
  });

  test("has others come in between, and is looked at to its end for the client's answer when it closes", async () => {
    let atOnce = 0;
    kit.socket.on("message", () => {
      if (frames > 1) return;
      kit.connection.close({ code: 1001, reason: "going away" });
      process.nextTick(() => (atOnce = frames));
    });
    const closed = once(kit.client, "close");
    stream().write(EMPTY_TEXTS);
    await closed;
    expect([frames, atOnce > 1 && atOnce < 500]).toEqual([1000, true]);
  });
});

test("A flood of pings of a registered client ends its connection with 1008, however few envelopes it sends", async () => {
  kit.connection.noteValid("key:alice-1", "agent://alice");
  for (let n = 0; n < 11; n += 1) kit.client.ping();
  const [code] = await once(kit.client, "close");
  expect([code, kit.reported]).toEqual([1008, expect.arrayContaining(["pings", "closing"])]);
});
