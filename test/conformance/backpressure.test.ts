import { describe, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay("alice", "bob-hmac", "carol");

function answers(socket: AgentSocket): Frame[] {
  return socket.frames.filter(({ frame }) => frame === "ack" || frame === "error");
}

async function untilAnswered(socket: AgentSocket, count: number): Promise<Frame[]> {
  await until(`${count} answers`, () => answers(socket).length >= count || socket.closed !== undefined, 15_000);
  return answers(socket);
}

describe("envelopes over the rate", () => {
  const BURST = 50;
  const slow = given(() => relay.startWsConnector({ RELAY_ENVELOPES_PER_SECOND: "10" }));

  test("wait: each is accepted, in order, and nothing is refused", async () => {
    const socket = await relay.online(slow, "bob-hmac");
    const envelopes = Array.from({ length: BURST + 20 }, () => relay.envelope("bob-hmac", "agent.heartbeat"));
    const startedAt = performance.now();
    for (const envelope of envelopes) socket.send(envelope);
    const answered = await untilAnswered(socket, envelopes.length + 1);
    expect(performance.now() - startedAt).toBeGreaterThan(1900);
    expect(answered.slice(1).map(({ envelope_id }) => envelope_id)).toEqual(envelopes.map(({ id }) => id));
    expect(answered.every(({ accepted }) => accepted)).toBe(true);
    expect(socket.closed).toBeUndefined();
  });

  test("hold nobody else up", async () => {
    const [greedy, modest] = [await relay.online(slow, "bob-hmac"), await relay.connect(slow)];
    for (let n = 0; n < BURST + 100; n += 1) greedy.send(relay.envelope("bob-hmac", "agent.heartbeat"));
    expect(await modest.ask(relay.envelope("carol", "agent.register"))).toMatchObject({ accepted: true });
    expect(answers(greedy).length).toBeLessThan(BURST + 100);
  });

  test("of a client that does not stop are followed by slow_down, with the limits, once in ten seconds", async () => {
    const socket = await relay.online(slow, "alice");
    for (let n = 0; n < BURST + 70; n += 1) socket.send(relay.envelope("alice", "agent.heartbeat"));
    await untilAnswered(socket, BURST + 71);
    expect(socket.notices("slow_down")).toEqual([
      { frame: "notice", notice: "slow_down", envelopes_per_second: 10, bytes_per_second: 524_288 },
    ]);
    expect(answers(socket).every(({ accepted }) => accepted)).toBe(true);
  });

  test("leave pings an allowance of their own, and a flood of those ends the connection with 1008", async () => {
    const socket = await relay.online(slow, "carol");
    for (let n = 0; n < BURST + 5; n += 1) socket.send(relay.envelope("carol", "agent.heartbeat"));
    socket.socket.ping();
    await untilAnswered(socket, BURST + 6);
    expect(socket.closed).toBeUndefined();
    for (let n = 0; n < BURST + 20; n += 1) socket.socket.ping();
    expect(await socket.untilClosed()).toBe(1008);
  });
});

describe("bytes over the budget", () => {
  test("wait: each envelope is accepted", async () => {
    const tight = await relay.startWsConnector({ RELAY_BYTES_PER_SECOND: "100000" });
    const socket = await relay.online(tight, "alice");
    const payload = { text: "x".repeat(30_000) };
    const startedAt = performance.now();
    for (let n = 0; n < 20; n += 1) socket.send(relay.envelope("alice", "message.send", { to: "agent://a", payload }));
    const answered = await untilAnswered(socket, 21);
    expect(answered.every(({ accepted }) => accepted)).toBe(true);
    expect(performance.now() - startedAt).toBeGreaterThan(1500);
  });
});
