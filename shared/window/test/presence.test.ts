import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { readingWindow } from "../../../test/support/reading-window.ts";
import { canDeliverRealtime, PresenceStore, presenceOf } from "../src/presence.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import { delivery, envelopeOf, messageOf, presence } from "./envelopes.ts";
import { Bench, ClockedLink } from "./kit.ts";

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
    const held = {
      onlineSince: status === "online" ? NOW - 200_000 : null,
      stableInMs: status === "online" ? 0 : null,
      isCongested: false,
    };
    const heldSince = connected ? NOW - 200_000 : null;
    expect(presenceOf(NOW, NOW - age, heldSince, offlineAfterMs)).toEqual({ status, severity, ...seen, ...held });
  });

  test("of an agent that nobody saw is not seen", () => {
    const nothing = { status: "not_seen", severity: null, staleMs: null, lastSeen: null };
    const notHeld = { onlineSince: null, stableInMs: null, isCongested: false };
    expect(presenceOf(NOW, null, NOW, offlineAfterMs)).toEqual({ ...nothing, ...notHeld });
  });

  test("is never negative when clocks differ", () => {
    expect(presenceOf(NOW, NOW + 5, NOW, offlineAfterMs)).toMatchObject({ status: "online", staleMs: 0 });
  });

  test("is congested only while it is online", () => {
    const congestedAt = (age: number) => presenceOf(NOW, NOW - age, NOW - age, offlineAfterMs, true);
    expect(congestedAt(45_000)).toMatchObject({ status: "online", severity: "ok", isCongested: true });
    expect(congestedAt(45_001)).toMatchObject({ status: "stale", isCongested: false });
    expect(
      [false, true]
        .map((isCongested) => presenceOf(NOW, NOW, NOW, offlineAfterMs, isCongested))
        .map(canDeliverRealtime),
    ).toEqual([true, false]);
    expect(canDeliverRealtime(presenceOf(NOW, NOW, null, offlineAfterMs))).toBe(false);
  });

  test("goes offline when the operator says so, critical or not", () => {
    expect(presenceOf(NOW, NOW - 60_000, NOW, 60_000).status).toBe("stale");
    expect(presenceOf(NOW, NOW - 60_001, NOW, 60_000)).toMatchObject({ status: "offline", severity: "offline" });
  });
});

describe("an agent that is online", () => {
  test.each([
    [0, 90_000],
    [89_999, 1],
    [90_000, 0],
    [3_600_000, 0],
  ])("held for %i ms is stable in %i ms", (heldMs, stableInMs) => {
    const onlineSince = NOW - heldMs;
    expect(presenceOf(NOW, NOW - 10_000, onlineSince, offlineAfterMs)).toMatchObject({ onlineSince, stableInMs });
  });
});

describe("presence in Redis", () => {
  const bench = new Bench();
  let link: ClockedLink;

  const presenceStore = (partitions = 1, offlineAfter: number = offlineAfterMs) =>
    new PresenceStore({ link, window: readingWindow(link, partitions), offlineAfterMs: offlineAfter });
  const seed = async (agent: string, age: number, connected: boolean) => {
    await bench.seed(agent, "pod-a c1 7", link.at - age);
    if (connected) return;
    await bench.client.zrem((await bench.keys()).online, agent);
    await bench.client.hdel((await bench.keys()).route, agent);
  };

  beforeEach(async () => {
    await bench.open();
    link = await ClockedLink.of(bench);
    await bench.pod({ link });
  });
  afterEach(() => bench.clear());
  afterAll(() => bench.redis.stop());

  test.each(BOUNDARIES)(
    "seen %i ms ago, connected %j, is %s: read, counted and met by a message alike",
    async (age, connected, status, severity) => {
      await bench.ear("pod-a");
      const pod = await bench.pod({ link });
      await seed("agent://bob", age, connected);
      expect(await presenceStore().read("agent://bob")).toEqual(
        presenceOf(link.at, link.at - age, connected ? link.at - age : null, offlineAfterMs),
      );

      const none = { ok: 0, stale: 0, critical_stale: 0, offline: 0, missing: [] };
      expect(await presenceStore().count()).toEqual(severity === null ? none : { ...none, [severity]: 1 });

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
    expect(await presenceStore().read("agent://bob")).toMatchObject({ status: "not_seen", lastSeen: null });
  });

  describe("online since", () => {
    const beat = 40_000;
    const since = async () => (await presenceStore().read("agent://bob")).onlineSince;

    test("the first register, as long as its connection does not let it go stale", async () => {
      const pod = await bench.pod({ link });
      const begun = link.at;
      await pod.register("agent://bob", "c1");
      for (let n = 0; n < 3; n += 1) {
        const stableInMs = 90_000 - n * beat;
        expect(await presenceStore().read("agent://bob")).toMatchObject({ onlineSince: begun, stableInMs });
        link.at += beat;
        if (n === 1) await pod.register("agent://bob", "c1");
        else await pod.heartbeat("agent://bob", "c1");
      }
      expect(await presenceStore().read("agent://bob")).toMatchObject({ onlineSince: begun, stableInMs: 0 });
    });

    test("the heartbeat that ended a silence in which it was stale", async () => {
      const pod = await bench.pod({ link });
      await pod.register("agent://bob", "c1");
      link.at += PRESENCE_LIMITS.staleAfterMs;
      await pod.heartbeat("agent://bob", "c1");
      expect(await since()).toBe(link.at - PRESENCE_LIMITS.staleAfterMs);
      link.at += PRESENCE_LIMITS.staleAfterMs + 1;
      expect(await since()).toBeNull();
      await pod.heartbeat("agent://bob", "c1");
      expect(await since()).toBe(link.at);
    });

    test("the last takeover: two connections that take it from each other are never stable", async () => {
      const pod = await bench.pod({ link });
      await bench.ear("pod-a");
      for (let n = 0; n < 4; n += 1) {
        await pod.register("agent://bob", n % 2 === 0 ? "c1" : "c2");
        expect(await presenceStore().read("agent://bob")).toMatchObject({ onlineSince: link.at, stableInMs: 90_000 });
        link.at += beat;
      }
    });

    test("the register after a close, however soon it comes", async () => {
      const pod = await bench.pod({ link });
      await pod.register("agent://bob", "c1");
      link.at += 1000;
      await bench.client.hdel((await bench.keys()).route, "agent://bob");
      expect(await since()).toBeNull();
      await pod.register("agent://bob", "c2");
      expect(await since()).toBe(link.at);
    });
  });

  test("is counted over all partitions, whatever the operator's offline threshold", async () => {
    await bench.client.flushall();
    await bench.pod({ link, partitions: 4 });
    await bench.seed("agent://a", "pod-a c1 7", link.at, 0);
    await bench.seed("agent://b", "pod-a c1 7", link.at, 3);
    await bench.seed("agent://c", "pod-a c1 7", link.at - 60_001, 2);
    await bench.seed("agent://d", "pod-a c1 7", link.at - 60_000, 1);
    expect(await presenceStore(4, 60_000).count()).toEqual({
      ok: 2,
      stale: 1,
      critical_stale: 0,
      offline: 1,
      missing: [],
    });
  });

  test("is pruned of agents unseen for more than a day, their routes included, and of no others", async () => {
    await seed("agent://gone", forgetAfterMs + 1, true);
    await seed("agent://kept", forgetAfterMs, true);
    await seed("agent://here", 0, true);
    await presenceStore().prune();
    const left = ["agent://kept", "agent://here"];
    expect(await bench.client.zrange((await bench.keys()).presence, "0", "-1")).toEqual(left);
    expect(await bench.client.zrange((await bench.keys()).online, "0", "-1")).toEqual(left);
    expect((await bench.client.hkeys((await bench.keys()).route)).sort()).toEqual(left.toSorted());
  });

  test("is pruned of so many agents a call and no more", async () => {
    const rows = Array.from({ length: REDIS_LIMITS.pruneBatch + 1 }, (_, n) => [1, `agent://a${n}`]).flat();
    await bench.client.zadd((await bench.keys()).presence, ...rows);
    await presenceStore().prune();
    expect(await bench.client.zcard((await bench.keys()).presence)).toBe(1);
    await presenceStore().prune();
    expect(await bench.client.zcard((await bench.keys()).presence)).toBe(0);
  });
});
