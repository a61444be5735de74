import { beforeEach, describe, expect, test } from "@jest/globals";
import { ENVELOPE_LIMITS, PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { readSnapshot } from "../src/counters/snapshot.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { ALICE, BOB, CAROL, delivery, envelopeOf, messageOf, presence, requestOf, textOf } from "./envelopes.ts";
import { ClockedLink, type Pod, redisBench } from "./kit.ts";

const bench = redisBench();
let pod: Pod;

beforeEach(async () => {
  pod = await bench.pod({ pod: "pod-a" });
});

describe("a message", () => {
  test("to an online target reaches its pod, for its connection under its epoch, as it was signed", async () => {
    const ear = await bench.ear("pod-b");
    const other = await bench.pod({ pod: "pod-b" });
    const { epoch } = await other.register(BOB, "c9");
    const message = messageOf(ALICE, BOB);
    expect(delivery(await pod.accept(message))).toMatchObject({
      outcome: "accepted",
      delivery: "online",
      sessionId: null,
      sessionStatus: null,
    });
    expect(await ear.lines()).toEqual([`deliver c9 ${epoch} agent://bob - ${textOf(message)}`]);
  });
});

describe("a pod without subscriber", () => {
  test("leaves its targets stale at once, and releases their routes and no others", async () => {
    await bench.ear("pod-b");
    await bench.seed(BOB, "pod-dead c1 7", Date.now());
    await bench.seed(CAROL, "pod-dead c1 8", Date.now());
    await bench.seed("agent://dave", "pod-b c2 9", Date.now());
    const [toBob, toDave] = await pod.acceptAll(messageOf(ALICE, BOB), messageOf(ALICE, "agent://dave"));
    expect([toBob, toDave]).toMatchObject([{ delivery: "stale" }, { delivery: "online" }]);
    expect(Object.keys(await bench.client.hgetall((await bench.keys()).route)).sort()).toEqual([CAROL, "agent://dave"]);
    expect(await bench.client.zrange((await bench.keys()).online, "0", "-1")).toEqual([CAROL, "agent://dave"]);
    expect(await bench.client.zscore((await bench.keys()).presence, BOB)).not.toBeNull();
  });

  test("leaves all that was sent to it in the batch stale, repeats and sessions included", async () => {
    await bench.seed(BOB, "pod-dead c1 7", Date.now());
    const message = messageOf(ALICE, BOB);
    const outcomes = await pod.acceptAll(message, message, requestOf(ALICE, BOB));
    expect(outcomes).toMatchObject([
      { outcome: "accepted", delivery: "stale" },
      { outcome: "duplicate", delivery: "stale" },
      { outcome: "accepted", delivery: "stale", sessionStatus: "pending_until_session.approve_or_session.reject" },
    ]);
  });

  test("does not cost an agent the newer route that it got in the same batch", async () => {
    const ear = await bench.ear("pod-a");
    await bench.seed(BOB, "pod-dead c1 7", Date.now());
    const last = messageOf(ALICE, BOB);
    const [before, registered, after] = await pod.acceptAll(
      messageOf(ALICE, BOB),
      envelopeOf("agent.register", BOB),
      last,
    );
    expect([before, registered, after]).toMatchObject([
      { delivery: "stale" },
      { outcome: "accepted" },
      { delivery: "online" },
    ]);
    const epoch = registered !== undefined && "epoch" in registered ? registered.epoch : null;
    expect((await bench.routes())[BOB]).toBe(`pod-a c1 ${epoch}`);
    expect(await bench.client.zscore((await bench.keys()).online, BOB)).not.toBeNull();
    expect(await ear.lines()).toEqual([`deliver c1 ${epoch} agent://bob - ${textOf(last)}`]);
  });
});

const routeOf = async (agent: string) => (await bench.routes())[agent];

describe("a register", () => {
  test("brings its agent online on its connection, seen by the clock of Redis", async () => {
    const before = Date.now();
    const { outcome, status, lastSeen, epoch, pending } = await pod.register(BOB, "c1");
    expect({ outcome, status, pending }).toEqual({ outcome: "accepted", status: "online", pending: [] });
    expect(lastSeen).toBeGreaterThanOrEqual(before);
    expect(lastSeen).toBeLessThanOrEqual(Date.now());
    expect(await routeOf(BOB)).toBe(`pod-a c1 ${epoch}`);
    expect(await bench.client.zscore((await bench.keys()).presence, BOB)).toBe(String(lastSeen));
    expect(await bench.client.zscore((await bench.keys()).online, BOB)).toBe(String(lastSeen));
  });

  test("on the connection that has the agent has a newer epoch, goes on with the hold, and tells nobody", async () => {
    const ear = await bench.ear("pod-a");
    const heldSince = async () => (await bench.client.hget((await bench.keys()).route, BOB))?.split(" ").at(-1);
    const first = await pod.register(BOB, "c1");
    const since = await heldSince();
    const again = await pod.register(BOB, "c1");
    expect(again).toMatchObject({ outcome: "accepted", status: "online" });
    expect(again.epoch).toBeGreaterThan(first.epoch as number);
    expect(await routeOf(BOB)).toBe(`pod-a c1 ${again.epoch}`);
    expect(await heldSince()).toBe(since);
    expect(await ear.lines()).toEqual([]);
  });

  test("on another pod takes the agent over, under a higher epoch that the old pod is told", async () => {
    const ear = await bench.ear("pod-a");
    const other = await bench.pod({ pod: "pod-b" });
    const first = await pod.register(BOB, "c1");
    const second = await other.register(BOB, "c9");
    expect(second.epoch).toBeGreaterThan(first.epoch as number);
    expect(await routeOf(BOB)).toBe(`pod-b c9 ${second.epoch}`);
    expect(await ear.lines()).toEqual([`superseded c1 ${second.epoch} agent://bob`]);
  });

  test("on another connection of the same pod takes the agent over as well", async () => {
    const ear = await bench.ear("pod-a");
    await pod.register(BOB, "c1");
    const { epoch } = await pod.register(BOB, "c2");
    expect(await ear.lines()).toEqual([`superseded c1 ${epoch} agent://bob`]);
  });

  test("raises the epoch with every takeover, those of one batch and those after a reset of the window included", async () => {
    const connections = ["c1", "c2", "c1", "c2"];
    const taken = await Promise.all(connections.map((connection) => pod.register(BOB, connection)));
    await bench.client.flushall();
    const epochs = [...taken, await pod.register(BOB, "c3")].map(({ epoch }) => epoch as number);
    expect(epochs).toEqual(epochs.toSorted((a, b) => a - b));
    expect(new Set(epochs).size).toBe(epochs.length);
  });

  test("sent again is a duplicate, which names its epoch to the connection that has the agent, and takes nothing over", async () => {
    const other = await bench.pod({ pod: "pod-b" });
    const register = envelopeOf("agent.register", BOB);
    const { epoch, lastSeen } = presence(await pod.accept(register, { connection: "c1" }));
    const repeat = { outcome: "duplicate", status: "online", lastSeen };
    expect(await other.accept(register, { connection: "c9" })).toMatchObject({ ...repeat, epoch: null });
    expect(await routeOf(BOB)).toBe(`pod-a c1 ${epoch}`);
    expect(await pod.accept(register, { connection: "c1" })).toMatchObject({ ...repeat, epoch });
  });
});

describe("a heartbeat", () => {
  test("brings an agent online that no connection has", async () => {
    const { outcome, status, epoch } = presence(await pod.heartbeat(BOB, "c1"));
    expect({ outcome, status }).toEqual({ outcome: "accepted", status: "online" });
    expect(await routeOf(BOB)).toBe(`pod-a c1 ${epoch}`);
  });

  test("of the connection that has the agent refreshes what was stale, under the same epoch", async () => {
    await bench.seed(BOB, "pod-a c1 7", Date.now() - PRESENCE_LIMITS.staleAfterMs - 5000);
    const { status, epoch, pending } = presence(await pod.heartbeat(BOB, "c1"));
    expect({ status, epoch, pending }).toEqual({ status: "online", epoch: 7, pending: [] });
  });

  test("of another connection is not registered while the owner's pod lives, which is asked about the owner", async () => {
    const ear = await bench.ear("pod-b");
    await bench.seed(BOB, "pod-b c9 7", Date.now() - PRESENCE_LIMITS.staleAfterMs - 5000);
    expect(await pod.heartbeat(BOB, "c1")).toEqual({ outcome: "not_registered", epoch: 7 });
    expect(await ear.lines()).toEqual(["probe c9 7 agent://bob"]);
    expect(await routeOf(BOB)).toBe("pod-b c9 7");
  });

  test("that was refused may be sent again once the owner is gone", async () => {
    const ear = await bench.ear("pod-b");
    await bench.seed(BOB, "pod-b c9 7", Date.now());
    const heartbeat = envelopeOf("agent.heartbeat", BOB);
    expect(await pod.accept(heartbeat)).toEqual({ outcome: "not_registered", epoch: 7 });
    await ear.close();
    expect(await pod.accept(heartbeat)).toMatchObject({ outcome: "accepted", status: "online" });
  });

  test("takes an agent over whose pod died, which is told nothing but the question", async () => {
    await bench.seed(BOB, "pod-dead c9 7", Date.now());
    await bench.client.config("RESETSTAT");
    const { outcome, epoch } = presence(await pod.heartbeat(BOB, "c1"));
    expect((await bench.commandCalls()).spublish).toBe(1);
    expect(outcome).toBe("accepted");
    expect(epoch).toBeGreaterThan(7);
    expect(await routeOf(BOB)).toBe(`pod-a c1 ${epoch}`);
  });
});

describe("sessions that wait", () => {
  test("come once with the acceptance that takes the agent, oldest first, and not with a refresh", async () => {
    const first = await pod.request(ALICE, BOB, 5);
    const second = await pod.request(CAROL, BOB, 1440);
    const { pending } = await pod.register(BOB);
    expect(pending).toEqual([
      {
        sessionId: first.sessionId,
        requester: ALICE,
        createdAt: first.acceptedAt,
        expiresAt: first.acceptedAt + 5 * 60_000,
      },
      {
        sessionId: second.sessionId,
        requester: CAROL,
        createdAt: second.acceptedAt,
        expiresAt: second.acceptedAt + 1440 * 60_000,
      },
    ]);
    expect((await pod.register(BOB)).pending).toEqual([]);
    expect(presence(await pod.heartbeat(BOB)).pending).toEqual([]);
  });

  test("come again with the repeat of the envelope that took the agent, to its owner alone", async () => {
    const { sessionId } = await pod.request(ALICE, BOB);
    const register = envelopeOf("agent.register", BOB);
    await pod.accept(register, { connection: "c1" });
    const repeat = presence(await pod.accept(register, { connection: "c1" }));
    expect(repeat.pending.map((session) => session.sessionId)).toEqual([sessionId]);
    expect(presence(await pod.accept(register, { connection: "c2" })).pending).toEqual([]);
  });

  test("come again to the next connection, those that were delivered included", async () => {
    await bench.ear("pod-a");
    await pod.register(BOB, "c1");
    const { sessionId, delivery } = await pod.request(ALICE, BOB);
    expect(delivery).toBe("online");
    const { pending } = await pod.register(BOB, "c2");
    expect(pending.map((session) => session.sessionId)).toEqual([sessionId]);
  });
});

test("what comes after a register in the same batch meets the agent online, what comes before does not", async () => {
  await bench.ear("pod-a");
  const outcomes = await pod.acceptAll(messageOf(ALICE, BOB), envelopeOf("agent.register", BOB), requestOf(ALICE, BOB));
  expect(outcomes).toMatchObject([{ delivery: "not_seen" }, { status: "online" }, { delivery: "online" }]);
});

const MINUTE = 60_000;
const SPAN = REDIS_LIMITS.guardBucketMs;

/** What two clocks may differ by, and the skew that a signer may have. */
const MARGIN = ENVELOPE_LIMITS.maxClockSkewMs + ENVELOPE_LIMITS.podClockToleranceMs;

const published = async () => (await readSnapshot(pod.link, pod.window)).counters.get("published_envelopes") ?? 0;

describe("an envelope that was accepted", () => {
  test("is a duplicate for every pod, neither delivered nor counted again, with the present status", async () => {
    const ear = await bench.ear("pod-b");
    const other = await bench.pod({ pod: "pod-b" });
    const message = messageOf(ALICE, BOB);
    expect(await pod.accept(message)).toMatchObject({ outcome: "accepted", delivery: "not_seen" });
    await other.register(BOB, "c9");
    expect(await pod.accept(message)).toMatchObject({ outcome: "duplicate", delivery: "online" });
    expect(await other.accept(message)).toMatchObject({ outcome: "duplicate", delivery: "online" });
    expect(await ear.lines()).toEqual([]);
    expect(await published()).toBe(1);
  });

  test("is a duplicate within its own batch", async () => {
    const ear = await bench.ear("pod-a");
    await bench.seed(BOB, "pod-a c1 7", Date.now());
    const message = messageOf(ALICE, BOB);
    const outcomes = await pod.acceptAll(message, message);
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(["accepted", "duplicate"]);
    expect(await ear.lines()).toEqual([`deliver c1 7 agent://bob - ${textOf(message)}`]);
    expect(await published()).toBe(1);
  });

  test("stays one after the window was reset", async () => {
    const message = messageOf(ALICE, BOB);
    await pod.accept(message);
    await bench.client.del(partitionKeys.window(0));
    expect(await pod.accept(message)).toMatchObject({ outcome: "duplicate" });
  });

  test.each([{ id: "another" }, { ts: Date.now() - 1 }, { key_id: "key-2" }, { to: CAROL }])(
    "is another one when %j differs",
    async (change) => {
      const message = messageOf(ALICE, BOB, { ts: Date.now() });
      await pod.accept(message);
      expect(await pod.accept({ ...message, ...change })).toMatchObject({ outcome: "accepted" });
    },
  );
});

describe("the replay guard", () => {
  test("keeps a bucket of five seconds for as long as a ts of these could pass anywhere", async () => {
    expect(SPAN).toBe(5000);
    const span = Math.floor(Date.now() / SPAN) - 2;
    const bucket = partitionKeys.seen(0, span);
    const [early, late] = [span * SPAN, span * SPAN + SPAN - 1];
    await pod.accept(messageOf(ALICE, BOB, { ts: early }));
    const expiresAt = span * SPAN + SPAN + MARGIN;
    expect(await bench.client.pexpiretime(bucket)).toBe(expiresAt);
    await pod.accept(messageOf(ALICE, BOB, { ts: late }));
    expect(await bench.client.pexpiretime(bucket)).toBe(expiresAt);
    expect(await bench.client.scard(bucket)).toBe(2);
  });

  test("refuses, to the millisecond, a ts whose bucket is forgotten or whose time is too far ahead", async () => {
    const link = await ClockedLink.of(bench);
    const clocked = await bench.pod({ link });
    const from = Math.floor(Date.now() / SPAN) * SPAN;
    const message = () => messageOf(ALICE, BOB, { ts: from + 1234 });
    const outcomeAt = async (at: number) => {
      link.at = at;
      return (await clocked.accept(message())).outcome;
    };
    expect(await outcomeAt(from + SPAN + MARGIN - 1)).toBe("accepted");
    expect(await outcomeAt(from + SPAN + MARGIN)).toBe("clock_skew");
    expect(await outcomeAt(from - MARGIN)).toBe("accepted");
    expect(await outcomeAt(from - MARGIN - 1)).toBe("clock_skew");
  });

  test("refuses one envelope of a batch and takes the others", async () => {
    const old = messageOf(ALICE, BOB, { ts: Date.now() - MARGIN - 2 * MINUTE });
    const outcomes = await pod.acceptAll(messageOf(ALICE, BOB), old, messageOf(ALICE, BOB));
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(["accepted", "clock_skew", "accepted"]);
    expect(await published()).toBe(2);
  });
});
