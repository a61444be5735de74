import { once } from "node:events";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { CLOSE_CODES } from "protocol/contract/close-codes.ts";
import { announcedLimits } from "protocol/contract/frames.ts";
import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import { WebSocket, WebSocketServer } from "ws";
import { until } from "../../../test/support/until.ts";
import { Connection, type ConnectionContext, type ConnectionEvents } from "../src/connection.ts";
import { Outboxes } from "../src/outboxes.ts";
import { PrincipalRates } from "../src/principal-rates.ts";
import { TokenBuckets } from "../src/token-bucket.ts";
import { Turns } from "../src/turns.ts";
import { fakeSocket } from "./fake-socket.ts";

let server: WebSocketServer;
let client: WebSocket;
let socket: WebSocket;
let connection: Connection;
let context: ConnectionContext;
let outboxes: Outboxes;
let reported: string[];
/** As ws has it of the pod, but shorter. */
const CLOSE_TIMEOUT_MS = 50;
const CLOSING = { closeTimeout: CLOSE_TIMEOUT_MS };
const addressCounts = { open: 1, unregistered: 1, opened: 1 };

/** A connection over a real socket; the client answers pings only when it is reported to. */
beforeEach(async () => {
  server = new WebSocketServer({ host: "127.0.0.1", port: 0, ...CLOSING });
  await once(server, "listening");
  const connected = once(server, "connection");
  client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`, { autoPong: false });
  const [accepted, req] = await connected;
  socket = accepted;
  reported = [];
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
  outboxes = new Outboxes({ outboxBytes: 65_536, outboxTotal: 0 });
  const inflow = {
    envelopes: new TokenBuckets(2, 10),
    bytes: new TokenBuckets(0, 0),
    principals: new PrincipalRates(0, 0),
    principalBytes: new PrincipalRates(0, 0),
    turns: new Turns(),
    slowDownNotice: "",
  };
  context = {
    inflow,
    outboxes,
    greeting: { limits: announcedLimits({ envelopesPerSecond: 2, bytesPerSecond: 0 }) },
    events,
  };
  connection = new Connection(context, { id: "con_1", socket, stream: req.socket, addressCounts });
  connection.open();
  await once(client, "message");
});

afterEach(async () => {
  client.terminate();
  await until("the connection has ended", () => reported.includes("closed"));
  server.close();
});

const CHECKS_A_PING = CONNECTION_LIMITS.pingIntervalMs / CONNECTION_LIMITS.silenceCheckMs;
const checkSilence = (times: number) => {
  for (let n = 0; n < times; n += 1) connection.checkSilence();
};

/** Of a client that is silent from now on. */
async function untilPinged(): Promise<void> {
  // What the client sent last may still be on its way to be taken in: until then the socket is not read.
  await until("the socket is read", () => !socket.isPaused);
  const arrived = once(client, "ping");
  checkSilence(CHECKS_A_PING + 1);
  await arrived;
}

describe("pings", () => {
  const pings: unknown[] = [];
  beforeEach(() => {
    pings.length = 0;
    client.on("ping", (data) => pings.push(data));
  });

  test("go to no client that was heard from within the interval", async () => {
    for (let n = 0; n < 3; n += 1) {
      checkSilence(CHECKS_A_PING);
      const heard = once(socket, "message");
      client.send("text");
      await heard;
    }
    // What was sent before has arrived with it.
    connection.send("last");
    await once(client, "message", { signal: AbortSignal.timeout(5000) });
    expect(pings).toEqual([]);
  });

  test("that are unanswered twice end the connection with 1013 when the third would be due", async () => {
    await untilPinged();
    const second = once(client, "ping");
    checkSilence(CHECKS_A_PING);
    await second;
    checkSilence(CHECKS_A_PING - 1);
    expect(connection.isClosing).toBe(false);
    checkSilence(1);
    const [code] = await once(client, "close");
    expect([code, pings.length]).toEqual([1013, 2]);
  });

  test.each([
    ["a pong", "pong", () => client.pong()],
    ["any text", "message", () => client.send("text")],
    ["a ping", "ping", () => client.ping()],
  ])("are answered by %s", async (_what, event, answer) => {
    for (let n = 0; n < 3; n += 1) {
      await untilPinged();
      checkSilence(CHECKS_A_PING);
      const heard = once(socket, event);
      answer();
      await heard;
    }
    expect(connection.isClosing).toBe(false);
  });

  test("are not due of a client that is not read", () => {
    checkSilence(CHECKS_A_PING);
    connection.pause("rate");
    checkSilence(5 * CHECKS_A_PING);
    connection.resume("rate");
    checkSilence(2 * CHECKS_A_PING);
    expect(connection.isClosing).toBe(false);
  });

  test("are not sent once the connection closes", async () => {
    connection.close({ code: 4409, reason: "superseded" });
    checkSilence(5 * CHECKS_A_PING);
    const [code] = await once(client, "close");
    expect([code, pings]).toEqual([4409, []]);
  });
});

test("The end is reported once, before the socket is gone, and nothing is sent or heard after it", async () => {
  connection.close({ code: 1008, reason: "policy" });
  expect(reported).toEqual(["closing"]);
  expect(connection.send("late")).toBe(false);
  connection.close({ code: 1001, reason: "going away" });
  client.send("late");
  const [code, reason] = await once(client, "close");
  expect([code, String(reason)]).toEqual([1008, "policy"]);
  await until("the connection has ended", () => reported.includes("closed"));
  expect(reported).toEqual(["closing", "closed"]);
});

describe("a connection that is not read for two reasons", () => {
  beforeEach(() => {
    connection.pause("full_intake");
    connection.pause("draining");
    client.send("text");
  });

  test("is not read when one of them ends, and is when the other does", async () => {
    connection.resume("full_intake");
    expect(socket.isPaused).toBe(true);
    connection.resume("draining");
    await until("the text is read", () => reported.includes("text"));
  });

  test("is read once it closes, for the client's answer to the close, and not paused again", async () => {
    connection.close({ code: 1001, reason: "going away" });
    connection.pause("full_intake");
    expect(socket.isPaused).toBe(false);
    const [code] = await once(client, "close");
    expect(code).toBe(1001);
  });
});

describe("a register that is answered after the time for it is over", () => {
  let late: Connection;

  beforeEach(() => {
    jest.useFakeTimers();
    const { socket, stream } = fakeSocket();
    const unanswered = { ...context.events, text: () => reported.push("taken in") };
    late = new Connection({ ...context, events: unanswered }, { id: "con_2", socket, stream, addressCounts });
    late.open();
    socket.emit("message", Buffer.from("register"), false);
    jest.advanceTimersByTime(CONNECTION_LIMITS.registerWithinMs + 1);
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  test("does not have its connection closed while it is under way, nor when it turns out valid", () => {
    expect(reported).toEqual(["taken in"]);
    late.noteValid("key:alice-1", "agent://alice");
    late.allAnswered();
    jest.advanceTimersByTime(CONNECTION_LIMITS.registerWithinMs);
    expect([late.isClosing, reported]).toEqual([false, ["taken in", "registered"]]);
  });

  test("has it closed when it turns out invalid", () => {
    late.allAnswered();
    jest.advanceTimersByTime(CONNECTION_LIMITS.registerWithinMs);
    expect([late.isClosing, reported]).toEqual([true, ["taken in", "register_timeout", "register_within", "closing"]]);
  });
});

test("Connections share their listeners", () => {
  const { socket: other, stream } = fakeSocket();
  const another = new Connection(context, { id: "con_2", socket: other, stream, addressCounts });
  another.open();
  for (const event of ["message", "ping", "pong", "error", "close"]) {
    expect(other.listenerCount(event)).toBe(1);
    expect(socket.listeners(event)).toContain(other.listeners(event)[0]);
  }
  other.emit("close", 1006);
});

describe("a client that does not read", () => {
  const TEXT = "x".repeat(8192);
  let sent: number;

  /** Sends until the kernel takes no more and so many bytes wait. */
  const fill = (bytes: number) => {
    while (outboxes.bytes <= bytes && connection.send(TEXT)) sent += 1;
  };

  beforeEach(() => {
    sent = 0;
    client.pause();
  });

  test("is congested with more than half of an outbox, no longer when it has caught up, and gets everything", async () => {
    fill(32_768);
    expect([connection.isCongested, reported]).toEqual([true, ["congestion"]]);
    let received = 0;
    client.on("message", () => {
      received += 1;
    });
    client.resume();
    await until("it is no longer congested", () => !connection.isCongested);
    await until("all has arrived", () => received === sent);
    expect([outboxes.bytes, reported]).toEqual([0, ["congestion", "congestion"]]);
  });

  test("is closed with 1013 when more than four outboxes wait, and may still read what waited", async () => {
    fill(4 * 65_536);
    expect(connection.isClosing).toBe(true);
    expect(reported).toEqual(["congestion", "outbox", "closing"]);
    expect([outboxes.bytes, outboxes.congested]).toEqual([0, 0]);
    client.resume();
    const [code, reason] = await once(client, "close");
    expect([code, String(reason)]).toEqual([1013, "slow consumer"]);
  });

  test("reads what was sent before its close, and the close, however late it begins", async () => {
    fill(20_000);
    let received = 0;
    client.on("message", () => {
      received += 1;
    });
    let isClosed = false;
    connection.close(CLOSE_CODES.superseded, () => {
      isClosed = true;
    });
    expect([connection.send(TEXT), connection.isClosing, isClosed]).toEqual([false, true, false]);
    // Time in which ws would let the socket go, had it written the close.
    await delay(4 * CLOSE_TIMEOUT_MS);
    client.resume();
    const [code] = await once(client, "close");
    expect([code, received, isClosed, outboxes.bytes]).toEqual([4409, sent, true, 0]);
  });

  test("is disconnected when it reads nothing of what was sent before its close", async () => {
    fill(20_000);
    let isClosed = false;
    connection.close(CLOSE_CODES.superseded, () => {
      isClosed = true;
    });
    for (let n = 0; n < 10; n += 1) outboxes.check();
    expect([isClosed, outboxes.bytes > 0]).toEqual([false, true]);
    outboxes.check();
    expect([isClosed, outboxes.bytes]).toEqual([true, 0]);
    await until("the socket is gone", () => reported.includes("closed"));
  });

  test("is closed with 1013 when nothing drains, congested or not", async () => {
    fill(0);
    for (let n = 0; n < 10; n += 1) outboxes.check();
    expect(connection.isClosing).toBe(false);
    outboxes.check();
    expect(reported.slice(-2)).toEqual(["outbox_stalled", "closing"]);
    client.resume();
    const [code] = await once(client, "close");
    expect(code).toBe(1013);
  });
});

test("A flood of pings of a registered client ends its connection with 1008, however few envelopes it sends", async () => {
  connection.noteValid("key:alice-1", "agent://alice");
  for (let n = 0; n < 11; n += 1) client.ping();
  const [code] = await once(client, "close");
  expect([code, reported]).toEqual([1008, expect.arrayContaining(["pings", "closing"])]);
});

test("A client that goes on sending after its close was decided is read no further, and still learns why", async () => {
  const { _socket: raw } = client as unknown as { _socket: Socket };
  const { _socket: stream } = socket as unknown as { _socket: Socket };
  connection.close(CLOSE_CODES.superseded);
  const readBefore = stream.bytesRead;
  const flood = Buffer.alloc(1_000_000).fill(Buffer.from([0x89, 0x80, 0, 0, 0, 0]));
  for (let n = 0; n < 20; n += 1) raw.write(flood);
  const [code] = await once(client, "close");
  await until("the connection has ended", () => reported.includes("closed"));
  expect(code).toBe(4409);
  expect(stream.bytesRead - readBefore).toBeLessThan(1_000_000);
});
