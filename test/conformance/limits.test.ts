import { beforeAll, describe, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const REGISTER_WITHIN_MS = 10_000;
const relay = conformingRelay("alice", "bob-hmac", "carol", "dave");
const pod = given(() => relay.startWsConnectors());
const idle = given(async () => ({
  valid: await relay.online(pod, "dave"),
  silent: await relay.connect(pod),
  refused: await relay.connect(pod),
  openedAt: performance.now(),
}));
beforeAll(() => idle.refused.answerTo("no envelope"));

function answers(socket: AgentSocket): Frame[] {
  return socket.frames.filter(({ frame }) => frame === "ack" || frame === "error");
}

async function untilAnswered(socket: AgentSocket, count: number): Promise<Frame[]> {
  await until(`${count} answers`, () => answers(socket).length >= count || socket.closed !== undefined);
  return answers(socket);
}

describe("refusals in a row", () => {
  test("end the connection with 1008 when there are 20, each of them answered", async () => {
    const socket = await relay.connect(pod);
    for (let n = 0; n < 30; n += 1) socket.send("no envelope");
    expect(await socket.untilClosed()).toBe(1008);
    expect(answers(socket).map(({ code }) => code)).toEqual(Array(20).fill("malformed_json"));
  });

  test("count whatever their codes", async () => {
    const socket = await relay.connect(pod);
    const wrong = [
      "no envelope",
      "{}",
      JSON.stringify(relay.envelope("alice", "message.send", { to: "agent://a" })),
      JSON.stringify(relay.envelope("alice", "agent.register", { ts: 1 })),
      JSON.stringify({ ...relay.envelope("alice", "agent.register"), task_id: "changed" }),
    ];
    for (let n = 0; n < 20; n += 1) socket.send(wrong[n % wrong.length]);
    expect(await socket.untilClosed()).toBe(1008);
    expect(answers(socket)).toHaveLength(20);
  });

  test("do not end it when there are 19 and then a valid envelope, again and again", async () => {
    const socket = await relay.connect(pod);
    for (let round = 0; round < 3; round += 1) {
      for (let n = 0; n < 19; n += 1) socket.send("no envelope");
      expect(await socket.ask(relay.envelope("alice", "agent.heartbeat"))).toMatchObject({ accepted: true });
    }
    expect(answers(socket)).toHaveLength(60);
    expect(socket.closed).toBeUndefined();
  });
});

describe("envelopes over the rate", () => {
  const BURST = 5;
  const slow = given(() => relay.startWsConnector({ RELAY_ENVELOPES_PER_SECOND: "1" }));

  test("are rate_limited with retry_after_ms, and never end the connection", async () => {
    const socket = await relay.connect(slow);
    const envelopes = Array.from({ length: 40 }, () => relay.envelope("bob-hmac", "agent.heartbeat"));
    for (const envelope of envelopes) socket.send(envelope);
    await untilAnswered(socket, 40);
    const limited = answers(socket).filter(({ frame }) => frame === "error");
    expect(limited.length).toBeGreaterThanOrEqual(40 - BURST - 1);
    for (const { code, retry_after_ms, envelope_id } of limited) {
      expect(code).toBe("rate_limited");
      expect(retry_after_ms).toBeGreaterThan(0);
      expect(retry_after_ms).toBeLessThanOrEqual(1000);
      expect(envelopes.some(({ id }) => id === envelope_id)).toBe(true);
    }
    expect(socket.closed).toBeUndefined();
    const again = envelopes.at(-1);
    await until("the same envelope is accepted", async () => (await socket.ask(again)).frame === "ack");
  });

  test("are told from each other by connection", async () => {
    const [greedy, modest] = [await relay.connect(slow), await relay.connect(slow)];
    for (let n = 0; n < 20; n += 1) greedy.send(relay.envelope("bob-hmac", "agent.heartbeat"));
    expect(await modest.ask(relay.envelope("carol", "agent.register"))).toMatchObject({ accepted: true });
  });

  test("are limited even when they are no envelopes; those have no envelope_id", async () => {
    const socket = await relay.connect(slow);
    for (let n = 0; n < 30; n += 1) socket.send("no envelope");
    const limited = (await untilAnswered(socket, 30)).filter(({ code }) => code === "rate_limited");
    expect(limited.length).toBeGreaterThan(20);
    expect(limited.every(({ envelope_id }) => envelope_id === undefined)).toBe(true);
    expect(socket.closed).toBeUndefined();
  });

  test("count with pings: a flood of those ends the connection with 1008", async () => {
    const socket = await relay.connect(slow);
    for (let n = 0; n < 20; n += 1) socket.socket.ping();
    expect(await socket.untilClosed()).toBe(1008);
  });
});

test("A connection without a valid envelope within 10 s is closed with 1008; one that had one stays", async () => {
  const codes = await Promise.all([idle.silent, idle.refused].map((socket) => socket.untilClosed(12_000)));
  const elapsed = performance.now() - idle.openedAt;
  expect(codes).toEqual([1008, 1008]);
  for (const socket of [idle.silent, idle.refused]) {
    expect(socket.frames.at(-1)).toMatchObject({ frame: "error", code: "register_timeout", retry: "fix" });
  }
  expect(elapsed).toBeGreaterThan(REGISTER_WITHIN_MS - 500);
  expect(elapsed).toBeLessThan(REGISTER_WITHIN_MS + 1500);
  expect(await idle.valid.ask(relay.envelope("dave", "agent.heartbeat"))).toMatchObject({ accepted: true });
});
