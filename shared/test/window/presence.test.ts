import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS, REDIS_LIMITS } from "../../src/contract/limits.ts";
import { partitionKeys } from "../../src/window/keys.ts";
import { PresenceBoard, presenceOf } from "../../src/window/presence.ts";
import { ClockedLink } from "./clocked-link.ts";
import { delivery, envelopeOf, messageOf, presence } from "./envelopes.ts";
import { Bench } from "./kit.ts";

const NOW = 1_790_000_000_000;
const { offlineAfterMs, forgetAfterMs } = PRESENCE_LIMITS;

/** Age, with a connection or without → status and severity. */
const BOUNDARIES = [
  [0, true, "online", "ok"],
  [45_000, true, "online", "ok"],
  [45_001, true, "stale", "stale"],
  [0, false, "stale", "stale"],
  [120_000, true, "stale", "stale"],
  [120_001, true, "stale", "critical_stale"],
  [300_000, true, "stale", "critical_stale"],
  [300_000, false, "stale", "critical_stale"],
  [300_001, true, "offline", "offline"],
  [86_400_000, false, "offline", "offline"],
  [86_400_001, true, "not_seen", null],
] as const;

describe("presence", () => {
  test.each(BOUNDARIES)("seen %i ms ago, connected %j, is %s, severity %s", (age, connected, status, severity) => {
    const row = { staleMs: age, lastSeen: NOW - age };
    const seen = status === "not_seen" ? { staleMs: null, lastSeen: null } : row;
    expect(presenceOf(NOW, NOW - age, connected, offlineAfterMs)).toEqual({ status, severity, ...seen });
  });

  test("of an agent that nobody saw is not seen", () => {
    const nothing = { status: "not_seen", severity: null, staleMs: null, lastSeen: null };
    expect(presenceOf(NOW, null, true, offlineAfterMs)).toEqual(nothing);
  });

  test("is never negative when clocks differ", () => {
    expect(presenceOf(NOW, NOW + 5, true, offlineAfterMs)).toMatchObject({ status: "online", staleMs: 0 });
  });

  test("goes offline when the operator says so, critical or not", () => {
    expect(presenceOf(NOW, NOW - 60_000, true, 60_000).status).toBe("stale");
    expect(presenceOf(NOW, NOW - 60_001, true, 60_000)).toMatchObject({ status: "offline", severity: "offline" });
  });
});

describe("presence in Redis", () => {
  const bench = new Bench();
  let link: ClockedLink;

  const board = (partitions = 1, offlineAfter: number = offlineAfterMs) =>
    new PresenceBoard({ link, partitions, offlineAfterMs: offlineAfter });
  const seed = async (agent: string, age: number, connected: boolean) => {
    await bench.seed(agent, "pod-a c1 7", link.at - age);
    if (connected) return;
    await bench.client.zrem(partitionKeys.online(0), agent);
    await bench.client.hdel(partitionKeys.route(0), agent);
  };

  beforeEach(async () => {
    await bench.open();
    link = new ClockedLink(bench);
    await link.start();
  });
  afterEach(() => bench.clear());
  afterAll(() => bench.redis.stop());

  test.each(BOUNDARIES)(
    "seen %i ms ago, connected %j, is %s: read, counted and met by a message alike",
    async (age, connected, status, severity) => {
      await bench.ear("pod-a");
      const pod = await bench.pod({ link });
      await seed("agent://bob", age, connected);
      expect(await board().read("agent://bob")).toEqual(presenceOf(link.at, link.at - age, connected, offlineAfterMs));

      const none = { ok: 0, stale: 0, critical_stale: 0, offline: 0 };
      expect(await board().count()).toEqual(severity === null ? none : { ...none, [severity]: 1 });

      const met = delivery(await pod.accept(messageOf("agent://alice", "agent://bob")));
      expect(met.delivery).toBe(status === "offline" ? "stale" : status);
    },
  );

  test.each(BOUNDARIES)(
    "seen %i ms ago, connected %j, is %s in the answer to a repeated register",
    async (age, connected, status, _severity) => {
      const pod = await bench.pod({ link });
      await bench.ear("pod-a");
      const register = envelopeOf("agent.register", "agent://bob");
      await pod.accept(register);
      await seed("agent://bob", age, connected);
      expect(presence(await pod.accept(register))).toMatchObject({ outcome: "duplicate", status });
    },
  );

  test("of an agent that nobody saw is not seen", async () => {
    expect(await board().read("agent://bob")).toMatchObject({ status: "not_seen", lastSeen: null });
  });

  test("is counted over all partitions, whatever the operator's offline threshold", async () => {
    await bench.seed("agent://a", "pod-a c1 7", link.at, 0);
    await bench.seed("agent://b", "pod-a c1 7", link.at, 3);
    await bench.seed("agent://c", "pod-a c1 7", link.at - 60_001, 2);
    await bench.seed("agent://d", "pod-a c1 7", link.at - 60_000, 1);
    expect(await board(4, 60_000).count()).toEqual({ ok: 2, stale: 1, critical_stale: 0, offline: 1 });
  });

  test("is pruned of agents unseen for more than a day, their routes included, and of no others", async () => {
    await seed("agent://gone", forgetAfterMs + 1, true);
    await seed("agent://kept", forgetAfterMs, true);
    await seed("agent://here", 0, true);
    await board().prune();
    const left = ["agent://kept", "agent://here"];
    expect(await bench.client.zrange(partitionKeys.presence(0), "0", "-1")).toEqual(left);
    expect(await bench.client.zrange(partitionKeys.online(0), "0", "-1")).toEqual(left);
    expect((await bench.client.hkeys(partitionKeys.route(0))).sort()).toEqual(left.toSorted());
  });

  test("is pruned of so many agents a call and no more", async () => {
    const rows = Array.from({ length: REDIS_LIMITS.pruneBatch + 1 }, (_, n) => [1, `agent://a${n}`]).flat();
    await bench.client.zadd(partitionKeys.presence(0), ...rows);
    await board().prune();
    expect(await bench.client.zcard(partitionKeys.presence(0))).toBe(1);
    await board().prune();
    expect(await bench.client.zcard(partitionKeys.presence(0))).toBe(0);
  });
});
