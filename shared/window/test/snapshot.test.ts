import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import type { Place } from "relay-protocol/contract/refusals.ts";
import { SESSION_LIMITS, WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import { until } from "../../../test/support/until.ts";
import { readingWindow } from "../../../test/support/window-view.ts";
import { Acceptor } from "../src/acceptance/acceptor.ts";
import { readSnapshot } from "../src/counters/snapshot.ts";
import { controlKeys, partitionKeys } from "../src/redis/keys.ts";
import { recordPromotions } from "../src/window/data-loss.ts";
import { resetWindow } from "../src/window/reset.ts";
import { ALICE, BOB, CAROL, decisionOf, delivery, envelopeOf, messageOf, requestOf } from "./envelopes.ts";
import { ClockedLink, type Incoming, LOGGER, Pod, redisBench } from "./kit.ts";

const bench = redisBench();
let pod: Pod;

describe("a snapshot", () => {
  const PARTITIONS = 2;

  beforeEach(async () => {
    pod = await bench.pod({ partitions: PARTITIONS });
    for (let n = 0; n < 8; n += 1) await pod.accept(messageOf(ALICE, `agent://a${n}`));
  });

  /** Resets the window so many times between the read of partition 0 and that of the other one. */
  async function resetBetweenReads(times: number): Promise<void> {
    const other = await bench.link();
    const { link } = pod;
    const run = link.run.bind(link);
    let read = Promise.resolve();
    let resets = 0;
    jest.spyOn(link, "run").mockImplementation(async (script, keys, args) => {
      if (script !== "snapshot") return await run(script, keys, args);
      if (keys[0] !== partitionKeys.window(0)) {
        await read;
        return await run(script, keys, args);
      }
      const { promise, resolve } = Promise.withResolvers<void>();
      read = promise;
      const reply = await run(script, keys, args);
      resets += 1;
      if (resets <= times) await resetWindow(other, { partitions: PARTITIONS, deployId: "deploy-1", force: true });
      resolve();
      return reply;
    });
  }

  test("is of one window: when a reset comes between its reads, it is read again", async () => {
    await resetBetweenReads(1);
    const { counters, windowId } = await readSnapshot(pod.link, pod.window);
    expect(counters.get("published_envelopes")).toBeUndefined();
    expect(windowId).toBe(await bench.client.hget(partitionKeys.window(1), "id"));
  });

  test("is unavailable rather than mixed when that happens again", async () => {
    await resetBetweenReads(Number.POSITIVE_INFINITY);
    await expect(readSnapshot(pod.link, pod.window)).rejects.toMatchObject({ code: "unavailable" });
  });
});

describe.each([1, 4])("over %i partitions", (partitions) => {
  const agents = Array.from({ length: 40 }, (_, n) => `agent://worker-${n}`);
  const snapshot = () => readSnapshot(pod.link, pod.window);

  beforeEach(async () => {
    pod = await bench.pod({ pod: "pod-a", partitions });
    for (let p = 0; p < partitions; p += 1) await bench.ear("pod-a", p);
  });

  test("the counters are exact after a mix of all kinds, repeats and refusals included", async () => {
    await pod.register(BOB);
    await pod.heartbeat(BOB);
    const message = messageOf(ALICE, BOB);
    await pod.acceptAll(message, message, messageOf(ALICE, "agent://nobody"));
    await pod.accept(messageOf(ALICE, BOB), { origin: "gateway" });
    await pod.heartbeat(BOB, "c2");
    const { sessionId } = await pod.request(ALICE, BOB);
    await pod.request(ALICE, BOB, 60, { origin: "gateway" });
    await pod.request(ALICE, "agent://nobody");
    await pod.request(ALICE, "agent://nobody", 60, { origin: "gateway" });
    const approval = decisionOf("approve", BOB, ALICE, sessionId as string);
    await pod.take(approval);
    await pod.take(approval);
    await pod.take(decisionOf("reject", BOB, ALICE, sessionId as string));
    await pod.accept(messageOf(ALICE, BOB, { ts: Date.now() - 3_600_000 }));

    expect(Object.fromEntries((await snapshot()).counters)).toEqual({
      // register, heartbeat, two messages, two requests, one decision
      websocket_accepted: 7,
      // three messages, four requests, one decision
      published_envelopes: 8,
      // one message, two requests, one decision
      published_to_offline_target: 4,
      simple_send_accepted: 1,
      session_requests: 4,
      session_requests_to_online_target: 2,
      simple_session_request_accepted: 2,
      simple_session_request_accepted_to_online_target: 1,
      simple_session_request_accepted_to_offline_target: 1,
    });
  });

  test("the 25 newest proofs are kept, newest first, and the last one to an online target apart from them", async () => {
    const online = agents[0] as string;
    for (const agent of [online, ...agents.slice(31)]) await pod.register(agent);
    for (const agent of agents.slice(31)) await pod.request(ALICE, agent);
    const asked = Date.now();
    await until("the next proof is newer", () => Date.now() > asked);
    const proof = await pod.request(ALICE, online, 60, { origin: "gateway" });
    expect(proof.delivery).toBe("online");
    const later: (string | null)[] = [];
    for (const agent of agents.slice(1, 31)) later.push((await pod.request(ALICE, agent)).sessionId);

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
      requester: ALICE,
      target: online,
      acceptedAt: proof.acceptedAt,
      targetStatus: "online",
      source: "simple_session_api",
      samePrincipal: false,
    });
  });

  test("proofs within one principal have the places that others leave", async () => {
    for (const agent of [BOB, CAROL]) await pod.register(agent);
    const request = async (from: string, to: string, incoming: Incoming = {}) =>
      (await pod.request(from, to, 60, incoming)).sessionId;
    const other = await request(ALICE, BOB);
    for (let n = 0; n < SESSION_LIMITS.retainedProofs + 1; n += 1)
      await request(`agent://own-${n}`, CAROL, { isWithinPrincipal: true });
    const { proofs } = await snapshot();
    expect(proofs).toHaveLength(SESSION_LIMITS.retainedProofs);
    expect(proofs.filter(({ samePrincipal }) => samePrincipal)).toHaveLength(SESSION_LIMITS.retainedProofs - 1);
    expect(proofs.map(({ sessionId }) => sessionId)).toContain(other);

    for (let n = 0; n < SESSION_LIMITS.retainedProofs; n += 1) await request(`agent://other-${n}`, agents[n] as string);
    expect(new Set((await snapshot()).proofs.map(({ samePrincipal }) => samePrincipal))).toEqual(new Set([false]));
  });
});

test("what a request to an offline target proves has the delivery status stale", async () => {
  const pod = await bench.pod();
  await bench.seed(BOB, "pod-a c1 7", Date.now() - 3_600_000);
  await pod.request(ALICE, BOB);
  const { proofs, lastOnlineProof } = await readSnapshot(pod.link, pod.window);
  expect(proofs.map(({ targetStatus }) => targetStatus)).toEqual(["stale"]);
  expect(lastOnlineProof).toBeNull();
});

test("a request whose target's pod just died proves nothing online", async () => {
  const pod = await bench.pod();
  await bench.seed(BOB, "pod-dead c1 7", Date.now());
  const { delivery: status } = delivery(await pod.accept(requestOf(ALICE, BOB), { origin: "gateway" }));
  const { lastOnlineProof, counters } = await readSnapshot(pod.link, pod.window);
  expect({ status, lastOnlineProof }).toEqual({ status: "stale", lastOnlineProof: null });
  expect(counters.get("simple_session_request_accepted_to_offline_target")).toBe(1);
});

test("a snapshot says unavailable while there is no window", async () => {
  const link = await bench.link();
  await expect(readSnapshot(link, readingWindow(link))).rejects.toMatchObject({ code: "unavailable" });
});

describe("published envelopes by minute", () => {
  const MINUTE_MS = 60_000;
  const MINUTE = 29_833_333;
  let link: ClockedLink;

  beforeEach(async () => {
    link = await ClockedLink.of(bench);
    const { window } = await bench.pod({ partitions: 2 });
    const acceptor = new Acceptor({
      link,
      window,
      pod: "p",
      offlineAfterMs: 300_000,
      proofFreshnessMs: 1000,
      logger: LOGGER,
    });
    pod = new Pod(link, window, acceptor);
  });

  const minutes = async () => Object.fromEntries((await readSnapshot(link, pod.window)).minutes);

  /** Publishes messages to one agent in a minute. */
  async function publish(minute: number, count = 1, to = BOB): Promise<void> {
    link.at = minute * MINUTE_MS;
    await pod.acceptAll(...Array.from({ length: count }, () => messageOf(ALICE, to, { ts: link.at })));
  }

  test("are exact, over partitions, and count what published_envelopes counts", async () => {
    await publish(MINUTE, 3);
    await publish(MINUTE, 2);
    const repeated = messageOf(ALICE, BOB, { ts: link.at });
    await pod.acceptAll(repeated, repeated, { ...envelopeOf("agent.register", BOB), ts: link.at });
    for (const to of ["agent://a1", "agent://a2", "agent://a3", "agent://a4"]) await publish(MINUTE + 1, 1, to);
    await pod.accept({ ...requestOf(ALICE, BOB), ts: link.at });
    expect(await minutes()).toEqual({ [MINUTE]: 6, [MINUTE + 1]: 5 });
    expect((await readSnapshot(link, pod.window)).counters.get("published_envelopes")).toBe(11);
    for (const p of [0, 1]) expect(await bench.client.hlen((await bench.keys(p)).published)).toBeGreaterThan(0);
  });

  test("change from one minute to the next with its last millisecond", async () => {
    link.at = (MINUTE + 1) * MINUTE_MS - 1;
    await pod.accept(messageOf(ALICE, BOB, { ts: link.at }));
    link.at += 1;
    await pod.accept(messageOf(ALICE, BOB, { ts: link.at }));
    expect(await minutes()).toEqual({ [MINUTE]: 1, [MINUTE + 1]: 1 });
  });

  test("of the last 60 minutes are kept, and no others", async () => {
    for (let n = 0; n < 100; n += 1) await publish(MINUTE + n);
    const last60 = Array.from({ length: WINDOW_LIMITS.minutes }, (_, n) => String(MINUTE + 40 + n));
    const { counters } = await readSnapshot(link, pod.window);
    expect([counters.get("published_envelopes"), counters.get("websocket_accepted")]).toEqual([100, 100]);
    const kept = await Promise.all([0, 1].map(async (p) => bench.client.hkeys((await bench.keys(p)).published)));
    expect(kept.flat().sort()).toEqual(last60.map((minute) => `${minute} websocket_accepted`));
    expect(Object.keys(await minutes())).toEqual(last60);
  });

  test("fade from the snapshot while nothing is published", async () => {
    await publish(MINUTE);
    await publish(MINUTE + 30);
    link.at = (MINUTE + 60) * MINUTE_MS;
    expect(await minutes()).toEqual({ [MINUTE + 30]: 1 });
    link.at = (MINUTE + 90) * MINUTE_MS;
    expect(await minutes()).toEqual({});
  });

  test("are left alone by a batch that publishes nothing", async () => {
    await pod.accept({ ...envelopeOf("agent.register", BOB), ts: link.at });
    expect(await bench.client.exists((await bench.keys()).published, (await bench.keys(1)).published)).toBe(0);
  });
});

describe("what a window may lack", () => {
  const PARTITIONS = 4;

  beforeEach(async () => {
    pod = await bench.pod({ partitions: PARTITIONS });
  });

  const lostSince = async () => (await readSnapshot(pod.link, pod.window)).lostSince;
  const record = (...noted: [Place, number][]) =>
    recordPromotions(
      pod.link,
      pod.window,
      new Map(noted.map(([place, silentFor]) => [place, performance.now() - silentFor])),
    );

  /** All keys of one slot are gone. */
  async function lose(windowKey: string): Promise<void> {
    const prefix = windowKey.slice(0, -"window".length);
    await bench.client.del(...(await bench.client.keys(`${prefix}*`)));
    await pod.window.adoptOpenWindow();
  }

  test("is nothing, of one that began empty", async () => {
    expect([...(await lostSince())]).toEqual([]);
  });

  test("is known since the earliest time that anybody records, whoever comes first", async () => {
    await record([1, 3000]);
    const first = (await lostSince()).get(1) as number;
    await record([1, 60_000]);
    const earlier = (await lostSince()).get(1) as number;
    expect(earlier).toBeLessThan(first - 30_000);
    await record([1, 1000]);
    expect([...(await lostSince())]).toEqual([[1, earlier]]);
  });

  test("is known since the window began of a primary that nobody who records it ever reached", async () => {
    const { startedAt } = pod.window.current;
    await record([1, Number.POSITIVE_INFINITY]);
    // A silence is told in whole ms, rounded up.
    await until("the window is older than the silence", () => Date.now() > startedAt + 1);
    await record([1, 0]);
    expect([...(await lostSince())]).toEqual([[1, startedAt]]);
  });

  test("is known of a promotion since its primary fell silent, once, whoever else records it, and later ones", async () => {
    const before = Date.now();
    await record([1, 5000], ["control", 3000]);
    const first = await lostSince();
    await Promise.all([record([1, 0], [11, 0]), record([1, 0], [11, 0])]);
    const noted = await lostSince();
    expect([...noted.keys()]).toEqual([1, "control", 11]);
    expect(noted.get(1)).toBe(first.get(1));
    expect(before - (noted.get(1) as number)).toBeGreaterThan(4000);
    expect(before - (noted.get("control") as number)).toBeLessThan(4000);
  });

  test("is not recorded of a window that was replaced, but of the next", async () => {
    await resetWindow(pod.link, { partitions: PARTITIONS, deployId: "deploy-2", force: false });
    await record([2, 0]);
    expect([...(await lostSince()).keys()]).toEqual([2]);
  });

  test("is a partition that was lost, from when its loss was seen, and what was noted before", async () => {
    await record([3, 0]);
    await lose(partitionKeys.window(1));
    const noted = await lostSince();
    expect([...noted.keys()].toSorted()).toEqual([1, 3]);
    expect(noted.get(1)).toBe(pod.window.current.startedAt);
  });

  test("is what is counted for all partitions, once the control slot was lost", async () => {
    await lose(controlKeys.window);
    expect([...(await lostSince())]).toEqual([["control", pod.window.current.startedAt]]);
  });

  test("is forgotten by a reset, which keeps nothing", async () => {
    await record([3, 0]);
    await lose(partitionKeys.window(1));
    await resetWindow(pod.link, { partitions: PARTITIONS, deployId: "deploy-1", force: true });
    expect([...(await lostSince())]).toEqual([]);
  });

  test("is nothing of a Redis that came back empty: all of it began anew", async () => {
    await record([3, 0]);
    await bench.client.flushall();
    await pod.window.adoptOpenWindow();
    expect([...(await lostSince())]).toEqual([]);
  });
});
