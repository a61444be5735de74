import { beforeAll, describe, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { ownTime } from "../support/time.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const REGISTER_WITHIN_MS = 10_000;
const relay = conformingRelay("alice", "bob-hmac", "carol", "dave");
const pod = given(() => relay.startWsConnectors());
/** Two that bring no valid envelope, how each of them ends, and one that brought one. */
const idle = given(async () => {
  const valid = await relay.online(pod, "dave");
  const openedAt = performance.now();
  const sockets = [await relay.connect(pod), await relay.connect(pod)] as const;
  const ends = sockets.map(async (socket) => {
    const code = await Promise.race([socket.untilClosed(60_000), ownTime(REGISTER_WITHIN_MS + 500)]);
    return { code, afterMs: performance.now() - openedAt };
  });
  return { valid, sockets, ends: Promise.all(ends) };
});
beforeAll(() => idle.sockets[1].answerTo("no envelope"));

function answers(socket: AgentSocket): Frame[] {
  return socket.frames.filter(({ frame }) => frame === "ack" || frame === "error");
}

function refusals(socket: AgentSocket): Frame[] {
  return answers(socket).filter(({ frame }) => frame === "error");
}

async function untilAnswered(socket: AgentSocket, count: number): Promise<Frame[]> {
  await until(`${count} answers`, () => answers(socket).length >= count || socket.closed !== undefined);
  return answers(socket);
}

describe("refusals in a row", () => {
  test("end the connection with 1008 when there are 20, each of them answered", async () => {
    const socket = await relay.online(pod, "carol");
    for (let n = 0; n < 30; n += 1) socket.send("no envelope");
    expect(await socket.untilClosed()).toBe(1008);
    expect(refusals(socket).map(({ code }) => code)).toEqual(Array(20).fill("malformed_json"));
  });

  test("count whatever their codes", async () => {
    const socket = await relay.online(pod, "carol");
    const wrong = [
      "no envelope",
      "{}",
      JSON.stringify(relay.envelope("alice", "message.send", { to: "agent://a" })),
      JSON.stringify(relay.envelope("alice", "agent.register", { ts: 1 })),
      JSON.stringify(relay.envelope("alice", "agent.register", { key_id: "nobody-1" })),
      JSON.stringify({ ...relay.envelope("alice", "agent.register"), task_id: "changed" }),
    ];
    for (let n = 0; n < 20; n += 1) socket.send(wrong[n % wrong.length]);
    expect(await socket.untilClosed()).toBe(1008);
    expect(refusals(socket)).toHaveLength(20);
  });

  test("do not end it when there are 19 and then a valid envelope, again and again", async () => {
    const socket = await relay.online(pod, "alice");
    for (let round = 0; round < 3; round += 1) {
      for (let n = 0; n < 19; n += 1) socket.send("no envelope");
      expect(await socket.ask(relay.envelope("alice", "agent.heartbeat"))).toMatchObject({ accepted: true });
    }
    expect(refusals(socket)).toHaveLength(57);
    expect(socket.closed).toBeUndefined();
  });
});

describe("before its first valid envelope a connection", () => {
  test("is closed with 1008 after eight frames, each of them answered", async () => {
    const socket = await relay.connect(pod);
    for (let n = 0; n < 9; n += 1) socket.send("no envelope");
    expect(await socket.untilClosed()).toBe(1008);
    expect(refusals(socket).map(({ code }) => code)).toEqual(Array(8).fill("malformed_json"));
  });

  test("may be valid with the eighth", async () => {
    const socket = await relay.connect(pod);
    for (let n = 0; n < 7; n += 1) socket.send("no envelope");
    expect(await socket.ask(relay.envelope("carol", "agent.register"))).toMatchObject({ accepted: true });
    for (let n = 0; n < 7; n += 1) socket.send("no envelope");
    await untilAnswered(socket, 15);
    expect(socket.closed).toBeUndefined();
  });

  test("is closed with 1008 after 64 KiB, also of a message in parts", async () => {
    const [whole, inParts] = [await relay.connect(pod), await relay.connect(pod)];
    for (let n = 0; n < 3; n += 1) whole.send("x".repeat(32_000));
    for (let n = 0; n < 16_000; n += 1) inParts.socket.send("x", { fin: false });
    expect(await whole.untilClosed()).toBe(1008);
    expect(await inParts.untilClosed()).toBe(1008);
  });

  test("is closed with 1008 after eight pings", async () => {
    const socket = await relay.connect(pod);
    for (let n = 0; n < 9; n += 1) socket.socket.ping();
    expect(await socket.untilClosed()).toBe(1008);
  });

  test("may send what it likes behind a register that is valid", async () => {
    const socket = await relay.connect(pod);
    socket.send(relay.envelope("carol", "agent.register"));
    for (let n = 0; n < 100; n += 1) socket.send(relay.envelope("carol", "message.send", { to: "agent://a" }));
    const answered = await untilAnswered(socket, 101);
    expect(answered.every(({ accepted }) => accepted)).toBe(true);
  });
});

test("A connection without a valid envelope within 10 s is closed with 1008; one that had one stays", async () => {
  for (const { code, afterMs } of await idle.ends) {
    expect(code).toBe(1008);
    expect(afterMs).toBeGreaterThan(REGISTER_WITHIN_MS - 500);
  }
  for (const socket of idle.sockets) {
    expect(socket.frames.at(-1)).toMatchObject({ frame: "error", code: "register_timeout", retry: "fix" });
  }
  expect(await idle.valid.ask(relay.envelope("dave", "agent.heartbeat"))).toMatchObject({ accepted: true });
});
