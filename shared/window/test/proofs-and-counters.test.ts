import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { SESSION_LIMITS } from "protocol/contract/limits.ts";
import { readingWindow } from "../../../test/support/reading-window.ts";
import { until } from "../../../test/support/until.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { readSession } from "../src/sessions.ts";
import { readSnapshot } from "../src/snapshot.ts";
import { decisionOf, delivery, envelopeOf, messageOf, requestOf } from "./envelopes.ts";
import { Bench, type Incoming, type Pod } from "./kit.ts";

const bench = new Bench();

beforeEach(() => bench.open());
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

describe.each([1, 4])("over %i partitions", (partitions) => {
  let pod: Pod;
  const agents = Array.from({ length: 40 }, (_, n) => `agent://worker-${n}`);
  const snapshot = () => readSnapshot(pod.link, pod.window);

  beforeEach(async () => {
    pod = await bench.pod({ pod: "pod-a", partitions });
    for (let p = 0; p < partitions; p += 1) await bench.ear("pod-a", p);
  });

  test("the counters are exact after a mix of all kinds, repeats and refusals included", async () => {
    const [alice, bob] = ["agent://alice", "agent://bob"];
    await pod.register(bob);
    await pod.heartbeat(bob);
    const message = messageOf(alice, bob);
    await pod.acceptAll(message, message, messageOf(alice, "agent://nobody"));
    await pod.accept(messageOf(alice, bob), { origin: "gateway" });
    await pod.heartbeat(bob, "c2");
    const { sessionId } = await pod.request(alice, bob);
    await pod.request(alice, bob, 60, { origin: "gateway" });
    await pod.request(alice, "agent://nobody", 60, { origin: "gateway" });
    const approval = decisionOf("approve", bob, alice, sessionId as string);
    await pod.take(approval);
    await pod.take(approval);
    await pod.take(decisionOf("reject", bob, alice, sessionId as string));
    await pod.accept(messageOf(alice, bob, { ts: Date.now() - 3_600_000 }));

    expect(Object.fromEntries((await snapshot()).counters)).toEqual({
      // register, heartbeat, two messages, one request, one decision
      websocket_accepted: 6,
      // three messages, three requests, one decision
      published_envelopes: 7,
      // one message, one request, one decision
      published_to_offline_target: 3,
      simple_send_accepted: 1,
      session_requests: 3,
      session_requests_to_online_target: 2,
      simple_session_request_accepted: 2,
      simple_session_request_accepted_to_online_target: 1,
      simple_session_request_accepted_to_offline_target: 1,
    });
  });

  test("the 25 newest proofs are kept, newest first, and the last one to an online target apart from them", async () => {
    const online = agents[0] as string;
    for (const agent of [online, ...agents.slice(31)]) await pod.register(agent);
    for (const agent of agents.slice(31)) await pod.request("agent://alice", agent);
    const asked = Date.now();
    await until("the next proof is newer", () => Date.now() > asked);
    const proof = await pod.request("agent://alice", online, 60, { origin: "gateway" });
    expect(proof.delivery).toBe("online");
    const later: (string | null)[] = [];
    for (const agent of agents.slice(1, 31)) later.push((await pod.request("agent://alice", agent)).sessionId);

    const { proofs, lastOnlineProof } = await snapshot();
    expect(proofs).toHaveLength(SESSION_LIMITS.retainedProofs);
    const times = proofs.map(({ acceptedAt }) => acceptedAt);
    expect(times).toEqual(times.toSorted((a, b) => b - a));
    const newest = later.slice(-SESSION_LIMITS.retainedProofs);
    if (partitions === 1) expect(proofs.map(({ sessionId }) => sessionId)).toEqual(newest.toReversed());
    for (let p = 0; p < partitions; p += 1) {
      expect(await bench.client.llen((await bench.keys(p)).proofs)).toBeLessThanOrEqual(SESSION_LIMITS.retainedProofs);
    }
    expect(proofs[0]).toMatchObject({ targetStatus: "not_seen", source: "websocket_envelope" });
    expect(lastOnlineProof).toEqual({
      sessionId: proof.sessionId,
      requester: "agent://alice",
      target: online,
      acceptedAt: proof.acceptedAt,
      targetStatus: "online",
      source: "simple_session_api",
      samePrincipal: false,
    });
  });

  test("proofs within one principal have the places that others leave", async () => {
    const [alice, bob, carol] = ["agent://alice", "agent://bob", "agent://carol"];
    for (const agent of [bob, carol]) await pod.register(agent);
    const request = async (from: string, to: string, incoming: Incoming = {}) =>
      (await pod.request(from, to, 60, incoming)).sessionId;
    const other = await request(alice, bob);
    for (let n = 0; n < SESSION_LIMITS.retainedProofs + 1; n += 1)
      await request(`agent://own-${n}`, carol, { isWithinPrincipal: true });
    const { proofs } = await snapshot();
    expect(proofs).toHaveLength(SESSION_LIMITS.retainedProofs);
    expect(proofs.filter(({ samePrincipal }) => samePrincipal)).toHaveLength(SESSION_LIMITS.retainedProofs - 1);
    expect(proofs.map(({ sessionId }) => sessionId)).toContain(other);

    for (let n = 0; n < SESSION_LIMITS.retainedProofs; n += 1) await request(`agent://other-${n}`, agents[n] as string);
    expect(new Set((await snapshot()).proofs.map(({ samePrincipal }) => samePrincipal))).toEqual(new Set([false]));
  });

  test("sessions are read and decided wherever requester and target lie", async () => {
    for (const [requester, target] of [
      [agents[0], agents[1]],
      [agents[2], agents[5]],
      [agents[7], agents[3]],
    ] as [string, string][]) {
      const { sessionId } = await pod.request(requester, target);
      await pod.register(requester, "c5");
      const decided = await pod.take(decisionOf("approve", target, requester, sessionId as string));
      expect(decided).toMatchObject({ outcome: "accepted", delivery: "online", sessionId });
      expect(await readSession(pod.link, pod.window, sessionId as string)).toMatchObject({
        status: "approved",
        target,
      });
    }
  });

  test("a decision by an agent that is not the target is not its session's, wherever that agent lies", async () => {
    const { sessionId } = await pod.request("agent://alice", "agent://bob");
    for (const agent of agents.slice(0, 8)) {
      const decision = decisionOf("approve", agent, "agent://alice", sessionId as string);
      expect(await pod.take(decision)).toEqual({ outcome: "not_your_session" });
    }
  });

  test("one batch to many agents is one call a partition", async () => {
    const used = new Set(agents.map((agent) => partitionOf(agent, partitions)));
    await bench.client.config("RESETSTAT");
    const outcomes = await pod.acceptAll(...agents.map((agent) => envelopeOf("agent.register", agent)));
    expect(outcomes.every(({ outcome }) => outcome === "accepted")).toBe(true);
    expect((await bench.commandCalls()).evalsha).toBe(used.size);
    expect(used.size).toBe(partitions);
  });
});

test("session requests to online targets are counted, whichever way they came in", async () => {
  const pod = await bench.pod();
  await bench.ear("pod-a");
  await bench.seed("agent://bob", "pod-a c1 7", Date.now());
  for (const origin of ["websocket", "gateway"] as const) {
    await pod.request("agent://alice", "agent://bob", 60, { origin });
    await pod.request("agent://alice", "agent://nobody", 60, { origin });
  }
  const { counters } = await readSnapshot(pod.link, pod.window);
  expect(counters.get("session_requests")).toBe(4);
  expect(counters.get("session_requests_to_online_target")).toBe(2);
  expect(counters.get("simple_session_request_accepted_to_online_target")).toBe(1);
});

test("what a request to an offline target proves has the delivery status stale", async () => {
  const pod = await bench.pod();
  await bench.seed("agent://bob", "pod-a c1 7", Date.now() - 3_600_000);
  await pod.request("agent://alice", "agent://bob");
  const { proofs, lastOnlineProof } = await readSnapshot(pod.link, pod.window);
  expect(proofs.map(({ targetStatus }) => targetStatus)).toEqual(["stale"]);
  expect(lastOnlineProof).toBeNull();
});

test("a request whose target's pod just died proves nothing online", async () => {
  const pod = await bench.pod();
  await bench.seed("agent://bob", "pod-dead c1 7", Date.now());
  const { delivery: status } = delivery(
    await pod.accept(requestOf("agent://alice", "agent://bob"), { origin: "gateway" }),
  );
  const { lastOnlineProof, counters } = await readSnapshot(pod.link, pod.window);
  expect({ status, lastOnlineProof }).toEqual({ status: "stale", lastOnlineProof: null });
  expect(counters.get("simple_session_request_accepted_to_offline_target")).toBe(1);
});

test("a snapshot says unavailable while there is no window", async () => {
  const link = await bench.link();
  await expect(readSnapshot(link, readingWindow(link))).rejects.toMatchObject({ code: "unavailable" });
});
