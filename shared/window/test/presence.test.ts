import { beforeEach, describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { readingWindow } from "../../../test/support/window-view.ts";
import { canDeliverRealtime, PresenceStore, presenceOf } from "../src/presence/presence.ts";
import { CongestionMarks } from "../src/presence/routes.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { readTarget } from "../src/sessions/look-ups.ts";
import { ALICE, BOB, CAROL, decisionOf, delivery, envelopeOf, messageOf, presence, requestOf } from "./envelopes.ts";
import { ClockedLink, type Ear, type Pod, redisBench } from "./kit.ts";

const bench = redisBench();
let link: ClockedLink;
let pod: Pod;

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
  const presenceStore = (partitions = 1, offlineAfter: number = offlineAfterMs) =>
    new PresenceStore({ link, window: readingWindow(link, partitions), offlineAfterMs: offlineAfter });
  const seed = async (agent: string, age: number, connected: boolean) => {
    await bench.seed(agent, "pod-a c1 7", link.at - age);
    if (connected) return;
    await bench.client.zrem((await bench.keys()).online, agent);
    await bench.client.hdel((await bench.keys()).route, agent);
  };

  beforeEach(async () => {
    link = await ClockedLink.of(bench);
    await bench.pod({ link });
  });

  test.each(BOUNDARIES)(
    "seen %i ms ago, connected %j, is %s: read, counted, told to a repeated register and met by a message alike",
    async (age, connected, status, severity) => {
      const ear = await bench.ear("pod-a");
      const pod = await bench.pod({ link });
      const register = envelopeOf("agent.register", BOB);
      await pod.accept(register);
      await seed(BOB, age, connected);
      expect(await presenceStore().read(BOB)).toEqual(
        presenceOf(link.at, link.at - age, connected ? link.at - age : null, offlineAfterMs),
      );

      const none = { ok: 0, stale: 0, critical_stale: 0, offline: 0, missing: [] };
      expect(await presenceStore().count()).toEqual(severity === null ? none : { ...none, [severity]: 1 });

      expect(presence(await pod.accept(register))).toMatchObject({ outcome: "duplicate", status });
      const met = delivery(await pod.accept(messageOf(ALICE, BOB)));
      expect(met.delivery).toBe(status === "offline" ? "stale" : status);
      expect(await ear.lines()).toHaveLength(status === "online" ? 1 : 0);
    },
  );

  test("of an agent that nobody saw is not seen", async () => {
    expect(await presenceStore().read(BOB)).toMatchObject({ status: "not_seen", lastSeen: null });
  });

  describe("online since", () => {
    const beat = 40_000;
    const since = async () => (await presenceStore().read(BOB)).onlineSince;

    test("the first register, as long as its connection does not let it go stale", async () => {
      const pod = await bench.pod({ link });
      const begun = link.at;
      await pod.register(BOB, "c1");
      for (let n = 0; n < 3; n += 1) {
        const stableInMs = 90_000 - n * beat;
        expect(await presenceStore().read(BOB)).toMatchObject({ onlineSince: begun, stableInMs });
        link.at += beat;
        if (n === 1) await pod.register(BOB, "c1");
        else await pod.heartbeat(BOB, "c1");
      }
      expect(await presenceStore().read(BOB)).toMatchObject({ onlineSince: begun, stableInMs: 0 });
    });

    test("the heartbeat that ended a silence in which it was stale", async () => {
      const pod = await bench.pod({ link });
      await pod.register(BOB, "c1");
      link.at += PRESENCE_LIMITS.staleAfterMs;
      await pod.heartbeat(BOB, "c1");
      expect(await since()).toBe(link.at - PRESENCE_LIMITS.staleAfterMs);
      link.at += PRESENCE_LIMITS.staleAfterMs + 1;
      expect(await since()).toBeNull();
      await pod.heartbeat(BOB, "c1");
      expect(await since()).toBe(link.at);
    });

    test("the last takeover: two connections that take it from each other are never stable", async () => {
      const pod = await bench.pod({ link });
      await bench.ear("pod-a");
      for (let n = 0; n < 4; n += 1) {
        await pod.register(BOB, n % 2 === 0 ? "c1" : "c2");
        expect(await presenceStore().read(BOB)).toMatchObject({ onlineSince: link.at, stableInMs: 90_000 });
        link.at += beat;
      }
    });

    test("the register after a close, however soon it comes", async () => {
      const pod = await bench.pod({ link });
      await pod.register(BOB, "c1");
      link.at += 1000;
      await bench.client.hdel((await bench.keys()).route, BOB);
      expect(await since()).toBeNull();
      await pod.register(BOB, "c2");
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

describe("of congested connections:", () => {
  const { offlineAfterMs, staleAfterMs } = PRESENCE_LIMITS;
  const { proofFreshnessMs } = SESSION_LIMITS;
  let ear: Ear;
  let marks: CongestionMarks;
  let epoch: number;
  const mark = (changes: object = {}) => ({ agent: BOB, connection: "c1", epoch, isCongested: true, ...changes });
  const read = () => new PresenceStore({ ...pod, offlineAfterMs }).read(BOB);
  const send = async () => delivery(await pod.accept(messageOf(ALICE, BOB))).delivery;
  const recordOf = async (agent: string, p = 0) => bench.client.hget((await bench.keys(p)).route, agent);

  beforeEach(async () => {
    link = await ClockedLink.of(bench);
    pod = await bench.pod({ link, pod: "pod-a" });
    ear = await bench.ear("pod-a");
    marks = new CongestionMarks({ ...pod, pod: "pod-a" });
    epoch = (await pod.register(BOB)).epoch as number;
  });

  describe("an agent whose connection is congested", () => {
    beforeEach(() => marks.write([mark()]));

    test("is a stale target to which nothing is published, until the mark is cleared", async () => {
      const request = requestOf(ALICE, BOB);
      expect(await send()).toBe("stale");
      expect(delivery(await pod.accept(request)).delivery).toBe("stale");
      const claim = { digest: "a", bodyDigest: "b" };
      expect(delivery(await pod.accept(messageOf(ALICE, BOB), { claim })).delivery).toBe("stale");
      expect(await pod.acceptAll(messageOf(ALICE, BOB), messageOf(ALICE, BOB))).toMatchObject(
        Array(2).fill({ outcome: "accepted", delivery: "stale" }),
      );
      await marks.write([mark({ isCongested: false })]);
      expect(await send()).toBe("online");
      expect(delivery(await pod.accept(request))).toMatchObject({ outcome: "duplicate", delivery: "online" });
      expect(await ear.lines()).toHaveLength(1);
    });

    test("is online for who asks, with its hold, and cannot be delivered to", async () => {
      expect(await read()).toMatchObject({ status: "online", onlineSince: link.at, isCongested: true });
      const target = await readTarget(
        link,
        pod.window,
        { agent: BOB, sessionId: null },
        { offlineAfterMs, proofFreshnessMs },
      );
      expect(target.presence).toMatchObject({ status: "online", onlineSince: link.at, isCongested: true });
      expect(await new PresenceStore({ ...pod, offlineAfterMs }).count()).toMatchObject({ ok: 1, stale: 0 });
    });

    test("keeps its hold over heartbeats, which repeat the mark or clear it", async () => {
      const begun = link.at;
      link.at += 15_000;
      await pod.accept(envelopeOf("agent.heartbeat", BOB), { isCongested: () => true });
      expect(await read()).toMatchObject({ onlineSince: begun, staleMs: 0, isCongested: true });
      await pod.heartbeat(BOB);
      expect(await read()).toMatchObject({ onlineSince: begun, isCongested: false });
    });

    test("is told at its first heartbeat after it has caught up what was decided and asked meanwhile, and holds anew", async () => {
      const ofBob = (await pod.request(BOB, ALICE)).sessionId as string;
      expect(await pod.take(decisionOf("approve", ALICE, BOB, ofBob))).toMatchObject({ delivery: "stale" });
      const { sessionId } = await pod.request(ALICE, BOB);
      expect(presence(await pod.heartbeat(BOB))).toMatchObject({ pending: [], decided: [] });
      link.at += 1000;
      await marks.write([mark({ isCongested: false })]);
      expect(await read()).toMatchObject({ onlineSince: link.at });
      link.at += 1000;
      const [told, further] = [presence(await pod.heartbeat(BOB)), presence(await pod.heartbeat(BOB))];
      expect(told).toMatchObject({ pending: [{ sessionId }], decided: [{ sessionId: ofBob, status: "approved" }] });
      expect(further).toMatchObject({ pending: [], decided: [] });
    });

    test("keeps its hold once it has caught up where nothing waits for it", async () => {
      const begun = link.at;
      link.at += 1000;
      await marks.write([mark({ isCongested: false })]);
      expect(await read()).toMatchObject({ onlineSince: begun });
    });

    test("goes stale like any other when its connection falls silent", async () => {
      link.at += staleAfterMs + 1;
      expect(await read()).toMatchObject({ status: "stale", isCongested: false });
      expect(await send()).toBe("stale");
    });

    test("is told as online in the answer to a repeated register", async () => {
      const register = envelopeOf("agent.register", BOB);
      const first = presence(await pod.accept(register, { isCongested: () => true }));
      const repeat = presence(await pod.accept(register));
      expect(repeat).toMatchObject({ outcome: "duplicate", status: "online", epoch: first.epoch });
    });

    test("is delivered to again once another connection has taken it over", async () => {
      await pod.register(BOB, "c2");
      expect([await send(), await read()]).toMatchObject(["online", { isCongested: false }]);
    });

    test("is congested from the start where it registers on a congested connection", async () => {
      await pod.accept(envelopeOf("agent.register", CAROL), { connection: "c9", isCongested: () => true });
      expect(delivery(await pod.accept(messageOf(ALICE, CAROL))).delivery).toBe("stale");
    });
  });

  describe("a late mark, or a late clearing,", () => {
    test.each([
      ["an older epoch", () => ({ epoch: epoch - 1 })],
      ["a shorter epoch", () => ({ epoch: Math.floor(epoch / 10) })],
      ["another connection", () => ({ connection: "c11" })],
      ["a connection whatever its epoch", () => ({ connection: "c", epoch: null })],
    ])("of %s does not touch the route", async (_whose, owner) => {
      await marks.write([mark(owner())]);
      expect((await read()).isCongested).toBe(false);
      await marks.write([mark()]);
      await marks.write([mark({ ...owner(), isCongested: false })]);
      expect((await read()).isCongested).toBe(true);
    });

    test("of an agent without a route makes none", async () => {
      await marks.write([mark({ agent: "agent://nobody", epoch: null })]);
      expect(await recordOf("agent://nobody")).toBeNull();
    });
  });

  test("An owner is marked whatever its epoch where that is not known, and changes nothing else of the record", async () => {
    const before = await recordOf(BOB);
    await marks.write([mark({ epoch: null })]);
    await marks.write([mark()]);
    expect(await recordOf(BOB)).toBe(`${before}!`);
    await marks.write([mark({ epoch: null, isCongested: false })]);
    expect(await recordOf(BOB)).toBe(before);
  });

  test("More agents than one call takes, in several partitions, are all marked", async () => {
    await bench.client.flushall();
    const two = await bench.pod({ partitions: 2 });
    const agents = Array.from({ length: 1100 }, (_, n) => `agent://a${n}`);
    for (const agent of agents) await bench.seed(agent, "pod-a c1 7", link.at, partitionOf(agent, 2));
    const inTwo = new CongestionMarks({ ...two, pod: "pod-a" });
    await inTwo.write(agents.map((agent) => mark({ agent, epoch: 7 })));
    const records = await Promise.all(agents.map((agent) => recordOf(agent, partitionOf(agent, 2))));
    expect(records.filter((record) => !record?.endsWith("!"))).toEqual([]);
  });
});
