import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "protocol/contract/limits.ts";
import { CongestionMarks } from "../src/congestion.ts";
import { PresenceStore } from "../src/presence.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { readTarget } from "../src/targets.ts";
import { decisionOf, delivery, envelopeOf, messageOf, presence, requestOf } from "./envelopes.ts";
import { Bench, ClockedLink, type Ear, type Pod } from "./kit.ts";

const [ALICE, BOB] = ["agent://alice", "agent://bob"] as const;
const { offlineAfterMs, staleAfterMs } = PRESENCE_LIMITS;
const { proofFreshnessMs } = SESSION_LIMITS;
const bench = new Bench();
let link: ClockedLink;
let pod: Pod;
let ear: Ear;
let marks: CongestionMarks;
let epoch: number;

const mark = (changes: object = {}) => ({ agent: BOB, connection: "c1", epoch, isCongested: true, ...changes });
const read = () => new PresenceStore({ ...pod, offlineAfterMs }).read(BOB);
const send = async () => delivery(await pod.accept(messageOf(ALICE, BOB))).delivery;
const recordOf = async (agent: string, p = 0) => bench.client.hget((await bench.keys(p)).route, agent);

beforeEach(async () => {
  await bench.open();
  link = await ClockedLink.of(bench);
  pod = await bench.pod({ link, pod: "pod-a" });
  ear = await bench.ear("pod-a");
  marks = new CongestionMarks({ ...pod, pod: "pod-a" });
  epoch = (await pod.register(BOB)).epoch as number;
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

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
    await pod.accept(envelopeOf("agent.register", "agent://carol"), { connection: "c9", isCongested: () => true });
    expect(delivery(await pod.accept(messageOf(ALICE, "agent://carol"))).delivery).toBe("stale");
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
