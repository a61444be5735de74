import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { until } from "../../../test/support/until.ts";
import { PodChannel } from "../src/channel/pod-channel.ts";
import { RouteRestorer } from "../src/presence/held-routes.ts";
import { PresenceStore } from "../src/presence/presence.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { readTarget } from "../src/sessions/look-ups.ts";
import { resetWindow } from "../src/window/reset.ts";
import { ALICE, envelopeOf, messageOf } from "./envelopes.ts";
import { ClockedLink, type Pod, redisBench } from "./kit.ts";

const bench = redisBench();

const { offlineAfterMs } = PRESENCE_LIMITS;
const { podLeaseMs, podLeaseGapMs, podLeasesKeptMs, partitionLoopbackMs, partitionOutOfReachMs } = REDIS_LIMITS;
const PARTITIONS = 2;
const BOB = agentIn(0);
const PODS = partitionKeys.pods(0);

/** The clock of Redis, for all scripts of the pod: it stands still unless a test moves it. */
let link: ClockedLink;

let pod: Pod;
let store: PresenceStore;

beforeEach(async () => {
  link = await ClockedLink.of(bench);
  pod = await bench.pod({ pod: "pod-a", partitions: PARTITIONS, link });
  store = new PresenceStore({ ...pod, offlineAfterMs });
  await pod.window.known();
});

describe("over several partitions, a pod that nobody hears for a moment", () => {
  beforeEach(async () => {
    await leases({ "pod-a": 0, "pod-b": podLeaseMs / 2 });
    await bench.seed(BOB, "pod-b c2 7", link.at);
  });

  test("has stale agents, which are not online, and keep their routes", async () => {
    expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ delivery: "stale" });
    expect(await bench.routes()).toEqual({ [BOB]: "pod-b c2 7" });
    expect(await store.read(BOB)).toMatchObject({ status: "stale", onlineSince: null });
    const query = { agent: BOB, sessionId: null };
    const { presence } = await readTarget(pod.link, pod.window, query, { offlineAfterMs, proofFreshnessMs: 1000 });
    expect(presence).toMatchObject({ status: "stale", onlineSince: null });
    expect((await store.count()).ok).toBe(0);
  });

  test("gets what is sent once it is heard again", async () => {
    await pod.accept(messageOf(ALICE, BOB));
    const ear = await bench.ear("pod-b");
    expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ delivery: "online" });
    expect(await ear.lines()).toHaveLength(1);
  });

  test("loses no agent to the heartbeat of another connection, which is unavailable, and may be sent again", async () => {
    const heartbeat = envelopeOf("agent.heartbeat", BOB);
    for (let n = 0; n < 2; n += 1)
      expect(await pod.accept(heartbeat, { connection: "c1" })).toEqual({ outcome: "unavailable", done: false });
    expect(await bench.routes()).toEqual({ [BOB]: "pod-b c2 7" });
    await bench.ear("pod-b");
    expect(await pod.accept(heartbeat, { connection: "c1" })).toEqual({ outcome: "not_registered", epoch: 7 });
  });

  test("loses an agent to a register", async () => {
    const { epoch } = await pod.register(BOB, "c1");
    expect(await bench.routes()).toEqual({ [BOB]: `pod-a c1 ${epoch}` });
  });

  test("costs no agent the newer route that the same batch gave it", async () => {
    const [sent] = await pod.acceptAll(messageOf(ALICE, BOB), envelopeOf("agent.register", BOB));
    expect(sent).toMatchObject({ delivery: "stale" });
    expect(await store.read(BOB)).toMatchObject({ status: "online" });
  });
});

describe("a pod whose lease is over", () => {
  beforeEach(() => bench.seed(BOB, "pod-b c2 7", link.at));

  test.each([
    ["that is old", { "pod-a": 0, "pod-b": podLeaseMs + 500 }],
    ["that was taken away", { "pod-a": 0 }],
    ["that was taken away, while no other is renewed", { "pod-a": podLeaseGapMs + 500 }],
  ])("of a lease %s, loses its routes with the next envelope that nobody hears", async (_which, ages) => {
    await leases(ages);
    expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ delivery: "stale" });
    expect(await bench.routes()).toEqual({});
  });

  test("loses an agent to the heartbeat of another connection", async () => {
    await leases({ "pod-a": 0, "pod-b": podLeaseMs + 500 });
    expect(await pod.heartbeat(BOB, "c1")).toMatchObject({ outcome: "accepted", status: "online" });
    expect((await bench.routes())[BOB]).toMatch(/^pod-a c1 /);
  });

  test.each([
    ["renewed one for a while", { "pod-a": podLeaseGapMs + 500, "pod-b": 60_000 }],
    ["has one", {}],
  ])("keeps its routes while nobody %s: the partition was away", async (_why, ages) => {
    await leases(ages);
    expect(await pod.heartbeat(BOB, "c1")).toMatchObject({ outcome: "unavailable" });
    expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ delivery: "stale" });
    expect(await bench.routes()).toEqual({ [BOB]: "pod-b c2 7" });
  });
});

describe("a lease", () => {
  test("begins with the start of the pod's channel, in each partition, and is renewed with each message of the pod to itself", async () => {
    const renewAll = await started("pod-a");
    expect(await renewedAt("pod-a")).toEqual([link.at, link.at]);
    link.at += 1;
    await renewAll();
    expect(await renewedAt("pod-a")).toEqual([link.at, link.at]);
    expect(await bench.client.pttl(PODS)).toBeGreaterThan(podLeasesKeptMs / 2);
  });

  test("is none of one partition: there a publish to nobody means that the pod is gone", async () => {
    await started("pod-a", 1);
    expect(await bench.client.exists(PODS)).toBe(0);
  });

  test("of another pod begins anew when none was renewed for a while, and ends when others were", async () => {
    await leases({ "pod-a": partitionLoopbackMs + partitionOutOfReachMs + 200, "pod-b": 5000 });
    await renew("pod-a");
    expect(await ages()).toEqual({ "pod-a": expect.any(Number), "pod-b": expect.any(Number) });
    expect((await ages())["pod-b"]).toBeLessThan(podLeaseMs);
    await leases({ "pod-a": 0, "pod-b": 5000, "pod-c": podLeaseMs / 2 });
    await renew("pod-a");
    expect(Object.keys(await ages()).toSorted()).toEqual(["pod-a", "pod-c"]);
  });

  test("of a pod that died ends, though the only one that lives is late with each of its own", async () => {
    const since = performance.now() - link.at;
    jest.spyOn(performance, "now").mockImplementation(() => since + link.at);
    const renewAll = await started("pod-a");
    await bench.client.zadd(PODS, link.at, "pod-b");
    for (const late of [podLeaseMs, 1]) {
      expect(Object.keys(await ages()).toSorted()).toEqual(["pod-a", "pod-b"]);
      link.at += late;
      await renewAll();
    }
    expect(Object.keys(await ages())).toEqual(["pod-a"]);
  });

  test("begins anew as well where the pod that renews next was late, and the partition away for longer", async () => {
    const lateMs = podLeaseGapMs + 200;
    await leases({ "pod-a": lateMs, "pod-b": podLeaseMs - 500 });
    await renew("pod-a", lateMs);
    expect((await ages())["pod-b"]).toBeGreaterThanOrEqual(podLeaseMs - 500);
    await leases({ "pod-a": lateMs + partitionOutOfReachMs + 200, "pod-b": 5000 });
    await renew("pod-a", lateMs);
    expect((await ages())["pod-b"]).toBeLessThan(podLeaseMs);
  });

  test("outlives a reset of the window: what is restored there is not taken for a dead pod's", async () => {
    await leases({ "pod-a": 0 });
    await resetWindow(pod.link, { partitions: PARTITIONS, deployId: "deploy-1", force: true });
    expect(Object.keys(await ages())).toEqual(["pod-a"]);
  });

  test("is renewed, and the message is heard, while Redis is full", async () => {
    const ear = await bench.ear("pod-a");
    await leases({ "pod-a": podLeaseGapMs + 500 });
    await bench.client.config("SET", "maxmemory", "1");
    expect(await renew("pod-a")).toBe(1);
    await bench.client.config("SET", "maxmemory", "0");
    expect((await ages())["pod-a"]).toBeLessThan(podLeaseGapMs);
    expect(await ear.lines()).toEqual(["loopback 1"]);
  });
});

describe("the highest epoch that a pod knows of a partition", () => {
  const AHEAD = 2 * Date.now() * 1000;
  let knowing: Pod;

  beforeEach(async () => {
    await bench.client.set((await bench.keys()).clock, String(AHEAD));
    knowing = await bench.pod({ pod: "pod-b", partitions: PARTITIONS });
    await knowing.register(BOB, "c2");
    // A replica took over that had received nothing of it.
    await bench.client.del((await bench.keys()).clock);
  });

  test.each([
    ["a register", () => knowing.register(agentIn(0, 1))],
    ["a heartbeat", () => knowing.heartbeat(BOB, "c2")],
    [
      "the restore of another agent",
      () => restorerOf(knowing).restore(0, [{ ...HELD, agent: agentIn(0, 1), heardAt: performance.now() }]),
    ],
  ])("goes with %s, and whoever takes an agent over then has a higher one", async (_what, act) => {
    await act();
    const { epoch } = await pod.register(agentIn(0, 2), "c1");
    expect(epoch).toBeGreaterThan(AHEAD + 1);
  });
});

const HELD = { connection: "c3", epoch: 5, isCongested: false, principal: "key:k", credentials: undefined } as const;

function restorerOf({ link, window, epochs }: Pod): RouteRestorer {
  return new RouteRestorer({ link, window, pod: "pod-b", epochs, offlineAfterMs });
}

/** Leases of the partition, by pod: how many ms ago each was renewed. No others are there. */
async function leases(ages: Readonly<Record<string, number>>): Promise<void> {
  await bench.client.del(PODS);
  for (const [name, age] of Object.entries(ages)) await bench.client.zadd(PODS, link.at - age, name);
}

async function ages(): Promise<Record<string, number>> {
  const names = await bench.client.zrange(PODS, "0", "-1");
  const ages = names.map(async (name) => [name, link.at - Number(await bench.client.zscore(PODS, name))] as const);
  return Object.fromEntries(await Promise.all(ages));
}

/** @param pauseMs for how long the pod had not tried to. */
async function renew(name: string, pauseMs: number = partitionLoopbackMs): Promise<unknown> {
  const channel = partitionKeys.podChannel(0, name);
  const args = [name, podLeaseMs, pauseMs + partitionOutOfReachMs, podLeasesKeptMs, channel, "loopback 1"];
  return await pod.link.run("renew_lease", [PODS], args);
}

/** When the pod renewed its lease last, in each partition. */
async function renewedAt(name: string): Promise<number[]> {
  return await Promise.all([0, 1].map(async (p) => Number(await bench.client.zscore(partitionKeys.pods(p), name))));
}

/** @returns has the pod send itself a message in each partition. */
async function started(name: string, partitions = PARTITIONS): Promise<() => Promise<void>> {
  const channel = new PodChannel({ calls: link, pod: name, partitions });
  bench.later(() => channel.stop());
  await channel.start();
  await until("it is heard", () => channel.unheard.length === 0);
  return async () => {
    for (let p = 0; p < partitions; p += 1) await channel.caughtUp(agentIn(p));
  };
}

/** The n-th agent of a partition. */
function agentIn(partition: number, n = 0): string {
  const names = Array.from({ length: 50 }, (_, i) => `agent://a${i}`);
  return names.filter((name) => partitionOf(name, PARTITIONS) === partition)[n] as string;
}
