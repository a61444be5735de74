import { beforeEach, describe, expect, test } from "@jest/globals";
import { PENDING } from "relay-protocol/contract/session.ts";
import { ENVELOPE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { guardBucketOf, type Prepared } from "../src/acceptance/acceptance.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { readSession } from "../src/sessions/look-ups.ts";
import { resetWindow } from "../src/window/reset.ts";
import { ALICE, BOB, CAROL, decisionOf, envelopeOf, MALLORY, messageOf, presence } from "./envelopes.ts";
import { ClockedLink, type Ear, type Pod, redisBench } from "./kit.ts";

const bench = redisBench();
const MINUTE = 60_000;
let link: ClockedLink;
let pod: Pod;
let sessionId: string;
let ear: Ear;

beforeEach(async () => {
  link = await ClockedLink.of(bench);
});

describe("a session", () => {
  beforeEach(async () => {
    pod = await bench.pod({ link, pod: "pod-a" });
    sessionId = (await pod.request(ALICE, BOB, 5)).sessionId as string;
  });

  const decision = (verb: "approve" | "reject", from = BOB, to = ALICE, id = sessionId) =>
    decisionOf(verb, from, to, id);
  const statusOf = async () => (await readSession(link, pod.window, sessionId))?.status;

  test.each([
    ["approve", "approved"],
    ["reject", "rejected"],
  ] as const)("is decided once by its target: %s makes it %s, for the requester to know", async (verb, status) => {
    const ear = await bench.ear("pod-a");
    await pod.register(ALICE, "c1");
    const envelope = decision(verb);
    const accepted = { outcome: "accepted", delivery: "online", sessionId, sessionStatus: status };
    expect(await pod.take(envelope)).toMatchObject(accepted);
    expect(await ear.lines()).toEqual([
      expect.stringMatching(new RegExp(`^deliver c1 \\d+ agent://alice ${sessionId} `)),
    ]);
    expect(await readSession(link, pod.window, sessionId)).toMatchObject({ status, decidedAt: link.at });
    expect(await pod.take(decision("approve"))).toEqual({ outcome: "session_closed" });
    expect(await pod.take(decision("reject"))).toEqual({ outcome: "session_closed" });
    expect(await statusOf()).toBe(status);
  });

  test("is not decided by anybody but its target, nor for anybody but its requester", async () => {
    const byOther = decision("approve", MALLORY);
    const byRequester = decision("approve", ALICE, BOB);
    const forOther = decision("approve", BOB, MALLORY);
    for (const envelope of [byOther, byRequester, forOther]) {
      expect(await pod.take(envelope)).toEqual({ outcome: "not_your_session" });
    }
    expect(await pod.take(decision("approve"))).toMatchObject({ outcome: "accepted" });
  });

  test("that does not exist, or that no partition can have, is unknown", async () => {
    const [missing, elsewhere] = [`ses_00${"0".repeat(24)}`, `ses_01${"0".repeat(24)}`];
    for (const id of [missing, elsewhere]) {
      const envelope = decision("approve", BOB, ALICE, id);
      expect(await pod.take(envelope)).toEqual({ outcome: "unknown_session" });
    }
  });

  test("is closed from the millisecond on that its time runs out", async () => {
    link.at += 5 * MINUTE;
    expect(await pod.take(decision("approve"))).toEqual({ outcome: "session_closed" });
    expect(await statusOf()).toBe("expired");
    link.at -= 1;
    expect(await pod.take(decision("approve"))).toMatchObject({ outcome: "accepted" });
  });

  test("decided in its last millisecond stays decided, and is kept for an hour from then", async () => {
    link.at += 5 * MINUTE - 1;
    const decidedAt = Date.now();
    expect(await pod.take(decision("approve"))).toMatchObject({ outcome: "accepted" });
    link.at += MINUTE;
    expect(await statusOf()).toBe("approved");
    const forgottenAt = await bench.client.pexpiretime((await bench.keys()).session(sessionId));
    expect(forgottenAt).toBeGreaterThanOrEqual(decidedAt + SESSION_LIMITS.keepAfterEndMs);
    expect(forgottenAt).toBeLessThanOrEqual(Date.now() + SESSION_LIMITS.keepAfterEndMs);
  });

  test("of a window that was reset is unknown; its decision opens nothing, and is made in the new window", async () => {
    await bench.client.flushall();
    expect(await pod.take(decision("approve"))).toEqual({ outcome: "unknown_session" });
    expect(await statusOf()).toBeUndefined();
    expect(await bench.client.hget(partitionKeys.window(0), "id")).toBe(pod.window.current.id);
  });

  test("of a window that is reset while its decision is under way is looked for in the new window", async () => {
    const run = link.run.bind(link);
    link.run = async (script, keys, args) => {
      const reply = await run(script, keys, args);
      if (script === "reserve_decision") {
        link.run = run;
        await resetWindow(link, { partitions: 1, deployId: "deploy-1", force: true });
      }
      return reply;
    };
    expect(await pod.take(decision("approve"))).toEqual({ outcome: "unknown_session" });
    expect(pod.window.current.id).toBe(await bench.client.hget(partitionKeys.window(0), "id"));
  });

  test("is not found under an id that is none", async () => {
    expect(await readSession(link, pod.window, "ses_none")).toBeNull();
    expect(await readSession(link, pod.window, `ses_zz${"0".repeat(24)}`)).toBeNull();
  });

  test("is not decided while Redis is gone: its decision is unavailable", async () => {
    const real = await bench.pod({ pod: "pod-b" });
    await bench.redis.kill();
    const envelope = envelopeOf("session.approve", BOB, {
      to: ALICE,
      payload: { session_id: sessionId },
    });
    expect(await real.take(envelope)).toEqual({ outcome: "unavailable" });
  });
});

describe.each([1, 3])("over %i partitions", (partitions) => {
  const statusOf = async () => (await readSession(link, pod.window, sessionId))?.status;
  const approve = (changes = {}) => decisionOf("approve", BOB, ALICE, sessionId, { ts: link.at, ...changes });
  const register = async (connection = "c1") =>
    presence(await pod.accept(envelopeOf("agent.register", ALICE, { ts: link.at }), { connection }));

  beforeEach(async () => {
    pod = await bench.pod({ link, pod: "pod-a", partitions });
    ear = await bench.ear("pod-a", partitionOf(ALICE, partitions));
    sessionId = (await pod.request(ALICE, BOB)).sessionId as string;
    expect(partitionOf(ALICE, partitions) === partitionOf(BOB, partitions)).toBe(partitions === 1);
  });

  describe("a decision is judged by the guard before it takes effect:", () => {
    test("with id, time, key and target of an earlier message it is a duplicate that decides nothing", async () => {
      await register();
      const message = messageOf(BOB, ALICE, { ts: link.at });
      await pod.accept(message);
      await ear.lines();
      const reused = approve({ id: message.id });
      expect(await pod.take(reused)).toMatchObject({ outcome: "duplicate", sessionId, sessionStatus: PENDING });
      expect(await statusOf()).toBe(PENDING);
      expect(await ear.lines()).toEqual([]);
      expect(await pod.take(approve())).toMatchObject({ outcome: "accepted", sessionStatus: "approved" });
    });

    test("with the same of a message to another agent it is an envelope of its own", async () => {
      const message = messageOf(BOB, CAROL, { ts: link.at });
      await pod.accept(message);
      expect(await pod.take(approve({ id: message.id }))).toMatchObject({ outcome: "accepted" });
    });

    test("once its place is reserved, every other envelope of that digest is the duplicate", async () => {
      await register();
      const decision = approve();
      const prepared = (await pod.prepare(decision)) as Prepared;
      const intruder = messageOf(BOB, ALICE, { ts: link.at, id: decision.id });
      expect(await pod.accept(intruder)).toMatchObject({ outcome: "duplicate" });
      const reject = { ...decision, type: "session.reject" };
      expect(await pod.take(reject)).toMatchObject({ outcome: "duplicate", sessionStatus: "approved" });
      expect(await pod.accept(decision, { prepared })).toMatchObject({ outcome: "accepted" });
      expect(await pod.take(reject)).toMatchObject({ outcome: "duplicate", sessionStatus: "approved" });
      expect(await ear.lines()).toEqual([expect.stringContaining(`${sessionId} {`)]);
    });

    test("beyond what the guard can hold it is refused, and decides nothing", async () => {
      const late = approve({ ts: link.at - ENVELOPE_LIMITS.maxClockSkewMs - 3 * MINUTE });
      expect(await pod.take(late)).toEqual({ outcome: "clock_skew" });
      expect(await statusOf()).toBe(PENDING);
    });

    test("refused, it is refused again, and its id is spent", async () => {
      const stranger = decisionOf("approve", CAROL, ALICE, sessionId, { ts: link.at });
      for (let n = 0; n < 2; n += 1) expect(await pod.take(stranger)).toEqual({ outcome: "not_your_session" });
      const other = messageOf(CAROL, ALICE, { ts: link.at, id: stranger.id });
      expect(await pod.accept(other)).toMatchObject({ outcome: "duplicate" });
    });
  });

  describe("a decision in effect reaches its requester when it is sent again:", () => {
    test.each([
      ["reserve_decision", PENDING],
      ["decide_session", "approved"],
      ["accept", "approved"],
    ] as const)("after Redis carried out %s, and no answer came", async (lost, status) => {
      await register();
      const decision = approve();
      const run = link.run.bind(link);
      link.run = async (script, keys, args) => {
        const reply = await run(script, keys, args);
        if (script === lost) throw new Error("no answer came");
        return reply;
      };
      expect(await pod.take(decision)).toEqual({ outcome: "unavailable" });
      link.run = run;
      expect(await statusOf()).toBe(status);
      const outcome = lost === "accept" ? "duplicate" : "accepted";
      expect(await pod.take(decision)).toMatchObject({ outcome, sessionStatus: "approved" });
      expect(await pod.take(decision)).toMatchObject({ outcome: "duplicate", sessionStatus: "approved" });
      expect(await ear.lines()).toHaveLength(1);
    });

    test("and once where it came twice at the same time", async () => {
      await register();
      const decision = approve();
      const outcomes = await Promise.all([1, 2, 3].map(() => pod.take(decision)));
      expect(outcomes.map(({ outcome }) => outcome).sort()).toEqual(["accepted", "duplicate", "duplicate"]);
      expect(await ear.lines()).toHaveLength(1);
    });

    test("even where the guard was lost in between", async () => {
      await register();
      const decision = approve();
      const prepared = (await pod.prepare(decision)) as Prepared;
      for (const key of await bench.client.keys("relay:*:seen:*")) await bench.client.del(key);
      expect(await pod.accept(decision, { prepared })).toMatchObject({ outcome: "accepted" });
    });
  });

  test("an accepted decision leaves one entry in the guard, which is forgotten with its bucket", async () => {
    const decision = approve();
    const { key, endsAt } = guardBucketOf(partitionOf(ALICE, partitions), { envelope: decision });
    const before = await bench.client.scard(key);
    await pod.prepare(decision);
    expect(await bench.client.scard(key)).toBe(before + 2);
    await pod.take(decision);
    expect(await bench.client.scard(key)).toBe(before + 1);
    expect(await bench.client.pexpiretime(key)).toBe(endsAt);
  });

  describe("a decision whose requester is not online", () => {
    const decidedFor = async () => (await register()).decided;

    test("is told when it comes online, each time within the hour, with what the look-up says", async () => {
      await pod.take(approve());
      const { decidedAt } = (await readSession(link, pod.window, sessionId)) as { decidedAt: number };
      const decided = { sessionId, target: BOB, status: "approved", decidedAt };
      expect(await decidedFor()).toEqual([decided]);
      expect((await register("c2")).decided).toEqual([decided]);
      link.at += SESSION_LIMITS.decidedKeptMs - 1;
      expect((await register("c3")).decided).toEqual([decided]);
      link.at += 1;
      expect((await register("c4")).decided).toEqual([]);
    });

    test("is not kept for one who was online, nor twice for a repeat", async () => {
      await register();
      await pod.take(approve());
      expect((await register("c2")).decided).toEqual([]);
      await bench.client.del((await bench.keys(partitionOf(ALICE, partitions))).route);
      const again = decisionOf("reject", BOB, ALICE, (await pod.request(ALICE, BOB)).sessionId as string, {
        ts: link.at,
      });
      for (let n = 0; n < 2; n += 1) await pod.take(again);
      expect((await register("c3")).decided).toMatchObject([{ status: "rejected" }]);
    });

    test("is kept, too, for one whose pod was found dead", async () => {
      await bench.seed(ALICE, "pod-dead c1 7", link.at, partitionOf(ALICE, partitions));
      expect(await pod.take(approve())).toMatchObject({ outcome: "accepted", delivery: "stale" });
      expect(await decidedFor()).toMatchObject([{ sessionId }]);
    });

    test("is one of 100 at most, the newest, which are gone from Redis after an hour", async () => {
      const most = SESSION_LIMITS.maxDecidedKept;
      const sessions: string[] = [];
      for (let n = 0; n <= most; n += 1) {
        link.at += 1500;
        const id = (await pod.request(ALICE, `agent://target-${n}`)).sessionId as string;
        await bench.client.del((await bench.keys(partitionOf(`agent://target-${n}`, partitions))).opened(ALICE));
        await pod.take(decisionOf("approve", `agent://target-${n}`, ALICE, id, { ts: link.at }));
        sessions.push(id);
      }
      const key = (await bench.keys(partitionOf(ALICE, partitions))).decided(ALICE);
      expect(await bench.client.pttl(key)).toBeLessThanOrEqual(SESSION_LIMITS.decidedKeptMs);
      expect((await decidedFor()).map((decided) => decided.sessionId)).toEqual(sessions.slice(1));
    });
  });
});
