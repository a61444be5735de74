import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import type { Pod } from "../support/relay.ts";
import { ownTime } from "../support/time.ts";
import { until } from "../support/until.ts";
import { giveUpCalls } from "../support/use.ts";
import { conformingRelay } from "./conforming.ts";

const ANSWER_WITHIN_MS = 1000;
const relay = conformingRelay("alice", "bob-hmac");
giveUpCalls();
let pod: Pod;
let alice: AgentSocket;
let bob: AgentSocket;

beforeEach(async () => {
  pod = await relay.startWsConnectors();
  alice = await relay.online(pod, "alice");
  bob = await relay.online(pod, "bob-hmac");
});

afterEach(async () => {
  await relay.redis.start();
  await relay.redis.resume();
  await pod.stop();
});

const message = (): Frame => relay.envelope("alice", "message.send", { to: "agent://bob-hmac" });

/** The answer, which must come within a second. */
async function promptly<T>(asked: Promise<T>): Promise<T> {
  const answer = await Promise.race([asked, ownTime(ANSWER_WITHIN_MS)]);
  expect(answer).not.toBe("late");
  return answer as T;
}

async function expectUnavailable(socket: AgentSocket, envelope: Frame): Promise<void> {
  expect(await promptly(socket.ask(envelope))).toMatchObject({
    frame: "error",
    code: "unavailable",
    envelope_id: envelope.id,
    retry_after_ms: expect.any(Number),
  });
}

async function probe(path: string) {
  const answer = await promptly(fetch(`${pod.url}${path}`));
  return { status: answer.status, body: (await answer.json()) as Frame };
}

/** Sends the same envelope again and again, as the hint of `unavailable` says, until it is accepted. */
async function untilAccepted(socket: AgentSocket, envelope: Frame): Promise<Frame> {
  let answer: Frame;
  await until(`${envelope.type} is accepted`, async () => {
    answer = await socket.ask(envelope);
    return answer.frame === "ack";
  });
  return answer;
}

describe("while Redis is dead", () => {
  beforeEach(() => relay.redis.kill());

  test("every envelope is unavailable within a second, no connection ends, and all goes on with the same envelopes", async () => {
    const register = relay.envelope("bob-hmac", "agent.register");
    const request = relay.envelope("alice", "session.request", { to: "agent://bob-hmac", payload: { purpose: "p" } });
    const envelope = message();
    await expectUnavailable(bob, register);
    await expectUnavailable(alice, request);
    await expectUnavailable(alice, envelope);

    await relay.redis.start();
    await untilAccepted(bob, register);
    expect((await untilAccepted(alice, envelope)).target_delivery.status).toBe("online");
    await untilAccepted(alice, request);
    await bob.delivered(request.id);
    expect(bob.deliveries.map(({ envelope }) => envelope.id)).toEqual([envelope.id, request.id]);
    expect([alice.closed, bob.closed]).toEqual([undefined, undefined]);
  });

  test("refusals of another kind are still made, and `unavailable` does not count as one", async () => {
    for (let n = 0; n < 30; n += 1) await expectUnavailable(alice, message());
    for (let n = 0; n < 19; n += 1) alice.send("no envelope");
    await expectUnavailable(alice, message());
    for (let n = 0; n < 19; n += 1) alice.send("no envelope");
    await expectUnavailable(alice, message());
    expect(alice.closed).toBeUndefined();
  });

  test("the pod is healthy and not ready; it is ready again afterwards", async () => {
    expect(await probe("/health")).toMatchObject({ status: 200, body: { ok: true } });
    expect(await probe("/ready")).toMatchObject({ status: 503, body: { ok: false, ready: false } });
    await relay.redis.start();
    await until("the pod is ready", async () => (await probe("/ready")).status === 200);
  });
});

describe("while Redis hangs", () => {
  beforeEach(() => relay.redis.pause());

  test("every envelope is unavailable within a second, and is accepted later, delivered at most once", async () => {
    const envelope = message();
    await expectUnavailable(alice, envelope);
    await expectUnavailable(alice, envelope);
    await relay.redis.resume();
    await untilAccepted(bob, relay.envelope("bob-hmac", "agent.heartbeat"));
    await untilAccepted(alice, envelope);
    const marker = message();
    await untilAccepted(alice, marker);
    await bob.delivered(marker.id);
    const arrived = bob.deliveries.map(({ envelope }) => envelope.id);
    expect(arrived.filter((id) => id === envelope.id).length).toBeLessThanOrEqual(1);
    expect(arrived.filter((id) => id === marker.id)).toHaveLength(1);
  });

  test("what waits behind a session decision is unavailable within a second, too", async () => {
    const payload = { session_id: `ses_00${"0".repeat(24)}` };
    const decision = relay.envelope("alice", "session.approve", { to: "agent://bob-hmac", payload });
    await Promise.all([expectUnavailable(alice, decision), expectUnavailable(alice, message())]);
  });

  test("many envelopes at once are all unavailable within a second", async () => {
    await Promise.all(Array.from({ length: 200 }, () => expectUnavailable(alice, message())));
  });

  test("the probes answer within a second, and the pod is ready again afterwards", async () => {
    expect(await probe("/health")).toMatchObject({ status: 200 });
    expect(await probe("/ready")).toMatchObject({ status: 503 });
    await relay.redis.resume();
    await until("the pod is ready", async () => (await probe("/ready")).status === 200);
  });
});

test("A pod that is well says so", async () => {
  expect(await probe("/health")).toMatchObject({ status: 200, body: { ok: true, service: "ws-connector" } });
  expect(await probe("/ready")).toMatchObject({ status: 200, body: { ok: true, ready: true } });
});
