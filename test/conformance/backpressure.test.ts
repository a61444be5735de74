import { beforeAll, describe, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay("alice", "bob-hmac", "carol");

function answers(socket: AgentSocket): Frame[] {
  return socket.frames.filter(({ frame }) => frame === "ack" || frame === "error");
}

async function untilAnswered(socket: AgentSocket, count: number): Promise<Frame[]> {
  await until(`${count} answers`, () => answers(socket).length >= count || socket.closed !== undefined);
  return answers(socket);
}

describe("envelopes over the rate", () => {
  const BURST = 50;
  const PER_SECOND = 10;
  /** More than half of the ten seconds after which a client is told to slow down. */
  const SECONDS = 7;
  const slow = given(() => relay.startWsConnector({ RELAY_ENVELOPES_PER_SECOND: String(PER_SECOND) }));
  const greedy = given(() => relay.online(slow, "bob-hmac"));
  const envelopes = Array.from({ length: BURST + SECONDS * PER_SECOND }, () =>
    relay.envelope("bob-hmac", "agent.heartbeat"),
  );
  let sentAt: number;
  beforeAll(() => {
    sentAt = performance.now();
    for (const envelope of envelopes) greedy.send(envelope);
  });

  test("hold nobody else up", async () => {
    const modest = await relay.connect(slow);
    expect(await modest.ask(relay.envelope("alice", "agent.register"))).toMatchObject({ accepted: true });
    expect(answers(greedy).length).toBeLessThan(envelopes.length);
  });

  test("leave pings an allowance of their own, and a flood of those ends the connection with 1008", async () => {
    const socket = await relay.online(slow, "carol");
    for (let n = 0; n < BURST + 5; n += 1) socket.send(relay.envelope("carol", "agent.heartbeat"));
    socket.socket.ping();
    await untilAnswered(socket, BURST + 6);
    expect(socket.closed).toBeUndefined();
    for (let n = 0; n < 4 * BURST; n += 1) socket.socket.ping();
    expect(await socket.untilClosed()).toBe(1008);
  });

  test("wait: each is accepted, in order, and nothing is refused", async () => {
    const answered = await untilAnswered(greedy, envelopes.length + 1);
    expect(performance.now() - sentAt).toBeGreaterThan(SECONDS * 1000 - 100);
    expect(answered.slice(1).map(({ envelope_id }) => envelope_id)).toEqual(envelopes.map(({ id }) => id));
    expect(answered.every(({ accepted }) => accepted)).toBe(true);
    expect(greedy.closed).toBeUndefined();
  });

  test("of a client that does not stop are followed by slow_down, with the limits, once in ten seconds", async () => {
    await untilAnswered(greedy, envelopes.length + 1);
    const told = greedy.notices("slow_down");
    expect(told[0]).toEqual({
      frame: "notice",
      notice: "slow_down",
      envelopes_per_second: PER_SECOND,
      bytes_per_second: 524_288,
    });
    expect(told.length).toBeLessThanOrEqual(1 + Math.floor((performance.now() - sentAt) / 10_000));
  });
});

describe("bytes over the budget", () => {
  test("wait: each envelope is accepted", async () => {
    const tight = await relay.startWsConnector({ RELAY_BYTES_PER_SECOND: "100000" });
    const socket = await relay.online(tight, "alice");
    const payload = { text: "x".repeat(30_000) };
    const startedAt = performance.now();
    for (let n = 0; n < 14; n += 1) socket.send(relay.envelope("alice", "message.send", { to: "agent://a", payload }));
    const answered = await untilAnswered(socket, 15);
    expect(answered.every(({ accepted }) => accepted)).toBe(true);
    expect(performance.now() - startedAt).toBeGreaterThan(1500);
  });
});
