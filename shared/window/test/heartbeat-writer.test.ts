import { beforeEach, describe, expect, test } from "@jest/globals";
import { ENVELOPE_LIMITS, PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Acceptance } from "../src/acceptance/acceptance.ts";
import { holderDigestOf } from "../src/limits/principals.ts";
import { type HeartbeatAnswer, HeartbeatWriter, type OwnedHeartbeat } from "../src/presence/heartbeat-writer.ts";
import { PresenceStore } from "../src/presence/presence.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { resetWindow } from "../src/window/reset.ts";
import { ALICE, BOB, envelopeOf, presence } from "./envelopes.ts";
import {
  AGENTS_PER_KEY,
  ClockedLink,
  held,
  LOGGER,
  type Pod,
  redisBench,
  restoreAs,
  TEAM,
  whileRedisHangs,
} from "./kit.ts";

const bench = redisBench();

const { staleAfterMs, offlineAfterMs, forgetAfterMs } = PRESENCE_LIMITS;
const HEARD_AGO = 3000;

/** The longest that a call may take. */
const ROUND_TRIP = REDIS_LIMITS.commandTimeoutMs;

let pod: Pod;

/** That of BOB on c1 of pod-a. */
let epoch: number;

beforeEach(async () => {
  pod = await bench.pod({ pod: "pod-a", agentsPerKey: AGENTS_PER_KEY });
  epoch = (await pod.register(BOB, "c1")).epoch as number;
});

/** A heartbeat of BOB on c1, which came in a moment ago. */
function beat(changes: Partial<OwnedHeartbeat["item"]> = {}, of: Partial<OwnedHeartbeat> = {}): OwnedHeartbeat {
  const item = { envelope: envelopeOf("agent.heartbeat", BOB), connection: "c1", principal: "key:key-1" as const };
  return { item: { ...item, ...changes }, epoch, heardAt: performance.now() - HEARD_AGO, ...of };
}

function write(
  heartbeats: readonly OwnedHeartbeat[],
  of: Pick<Pod, "link" | "window" | "epochs"> = pod,
  name = "pod-a",
) {
  const { link, window, epochs } = of;
  const options = { link, window, epochs, pod: name, agentsPerKey: AGENTS_PER_KEY, logger: LOGGER };
  return new HeartbeatWriter(options).write(0, heartbeats);
}

const routeRecord = async (agent = BOB) => await bench.client.hget((await bench.keys()).route, agent);
const seenAt = async (agent = BOB) => Number(await bench.client.zscore((await bench.keys()).presence, agent));

/** Has Redis say that BOB was heard so long ago. */
const heardAgo = async (ms: number, since = Date.now() - ms): Promise<void> => {
  const { route, presence, online } = await bench.keys();
  const at = Date.now() - ms;
  await bench.client.hset(route, BOB, `pod-a c1 ${epoch} ${at} ${since}`);
  await bench.client.zadd(presence, at, BOB);
  await bench.client.zadd(online, at, BOB);
};

/** All that Redis holds. */
async function everything(): Promise<unknown[]> {
  const { route, presence, online, counters } = await bench.keys();
  const buckets = (await bench.client.keys("relay:*:seen:*")).sort();
  return await Promise.all([
    bench.client.hgetall(route),
    bench.client.zrange(presence, "0", "-1", "WITHSCORES"),
    bench.client.zrange(online, "0", "-1", "WITHSCORES"),
    bench.client.hgetall(counters),
    ...buckets.map(async (key) => (await bench.client.smembers(key)).sort()),
  ]);
}

describe("the heartbeats of one call", () => {
  test("say of each agent when it was heard, not when they were written, by the clock of Redis", async () => {
    await heardAgo(10_000);
    const before = Date.now();
    const [answer] = await write([beat()]);
    const lastSeen = await seenAt();
    expect(answer).toMatchObject({ outcome: "accepted", about: "presence", status: "online", epoch, lastSeen });
    // The clock of Redis is known to within a round trip, and never taken for later than it is.
    expect(lastSeen).toBeGreaterThanOrEqual(before - HEARD_AGO - ROUND_TRIP);
    expect(lastSeen).toBeLessThanOrEqual(Date.now() - HEARD_AGO + 2);
    expect(await bench.client.zscore((await bench.keys()).online, BOB)).toBe(String(lastSeen));
    expect((await routeRecord())?.split(" ")[3]).toBe(String(lastSeen));
  });

  test("are one command each for routes, presence, guard and counts, however many they are", async () => {
    const agents = Array.from({ length: 50 }, (_, n) => `agent://crowd-${n}`);
    const epochs = await Promise.all(agents.map(async (agent) => (await pod.register(agent)).epoch as number));
    const beats = agents.map((agent, n) =>
      beat({ envelope: envelopeOf("agent.heartbeat", agent) }, { epoch: epochs[n] as number }),
    );
    await bench.client.config("RESETSTAT");
    const answers = await write(beats);
    const { evalsha, hmget, smismember, hset, zadd, sadd, hincrby } = await bench.commandCalls();
    expect(answers.map((answer) => answer?.outcome)).toEqual(agents.map(() => "accepted"));
    expect({ evalsha, hmget, hset, zadd, hincrby }).toEqual({ evalsha: 1, hmget: 1, hset: 1, zadd: 2, hincrby: 1 });
    // The envelopes may lie in two buckets of the guard.
    expect([1, 2]).toContain(smismember);
    expect(sadd).toBe(smismember);
  });

  test("are counted, and their envelopes guarded, as acceptance does both", async () => {
    const envelope = envelopeOf("agent.heartbeat", BOB);
    const counted = async () => Number(await bench.client.hget((await bench.keys()).counters, "websocket_accepted"));
    const before = await counted();
    await write([beat({ envelope }), beat()]);
    expect(await counted()).toBe(before + 2);
    expect(await pod.accept(envelope)).toMatchObject({ outcome: "duplicate", status: "online", epoch });
    const [bucket = ""] = await bench.client.keys("relay:*:seen:*");
    expect(await bench.client.pttl(bucket)).toBeGreaterThan(ENVELOPE_LIMITS.maxClockSkewMs);
  });

  test("never set back when an agent was heard, nor the mark that is true now", async () => {
    await write([beat({ isCongested: () => true })]);
    const { lastSeen } = presence(await pod.heartbeat(BOB, "c1"));
    expect(await write([beat({ isCongested: () => true })])).toMatchObject([{ outcome: "accepted" }]);
    expect(await seenAt()).toBe(lastSeen);
    expect(await routeRecord()).toMatch(new RegExp(` ${lastSeen} \\d+!$`));
  });

  test("renew what is kept of an agent's principal and credentials", async () => {
    const expiresAt = Date.now() + 2 * forgetAfterMs;
    const credential = { expiresAt, presented: { keyId: "jkt-a", token: "a.b.c" } };
    const registered = presence(await pod.accept(envelopeOf("agent.register", BOB), { ...TEAM, credential }));
    const keys = await bench.keys();
    await bench.client.pexpire(keys.credential(BOB), 60_000);
    const agents = keys.agents(holderDigestOf(TEAM.principal));
    await bench.client.zadd(agents, 1, BOB);
    const of = { epoch: registered.epoch as number, heardAt: performance.now() };
    await write([beat({ ...TEAM, credential: { expiresAt } }, of)]);
    expect(await bench.client.zscore(agents, BOB)).toBe(String(await seenAt()));
    expect(await bench.client.pttl(keys.credential(BOB))).toBeGreaterThan(forgetAfterMs - 60_000);
  });
});

describe("a write is left to acceptance, with nothing done,", () => {
  const known = envelopeOf("agent.heartbeat", BOB);
  const CASES: readonly [string, () => unknown, (() => OwnedHeartbeat)?][] = [
    [
      "of an agent that another pod's connection has taken over",
      async () => await (await bench.pod({ pod: "pod-b" })).register(BOB, "c9"),
    ],
    ["of another connection of its own pod", () => pod.register(BOB, "c2")],
    ["under another epoch than the route has", () => {}, () => beat({}, { epoch: epoch - 1 })],
    ["of an agent without a route", async () => await bench.client.hdel((await bench.keys()).route, BOB)],
    ["of an envelope that the guard knows", () => pod.accept(known), () => beat({ envelope: known })],
    [
      "of an envelope that the guard cannot hold",
      () => {},
      () => beat({ envelope: envelopeOf("agent.heartbeat", BOB, { ts: Date.now() - 3_600_000 }) }),
    ],
    ["of an agent that was stale: a new hold begins", () => heardAgo(staleAfterMs + HEARD_AGO + 1000)],
    [
      "of an agent that became stale while the heartbeat waited: senders were told so",
      () => heardAgo(staleAfterMs + HEARD_AGO / 2),
    ],
    ["of an agent that was heard at a time to come, by a clock that was set back since", () => heardAgo(-3_600_000)],
    ["of a route that was restored: the agent is to be told what waits", () => heardAgo(1000, Date.now())],
  ];
  test.each(CASES)("%s", async (_, befall, heartbeat = beat) => {
    await befall();
    const given = heartbeat();
    const before = await everything();
    expect(await write([given])).toEqual([null]);
    expect(await everything()).toEqual(before);
  });

  test("of the second of two with one envelope in one call", async () => {
    const { envelope } = beat().item;
    expect(await write([beat({ envelope }), beat({ envelope })])).toMatchObject([{ outcome: "accepted" }, null]);
  });
});

describe("a write that comes late", () => {
  test("does nothing once its sender was told `unavailable`", async () => {
    const before = await everything();
    const answers = await whileRedisHangs(bench, pod, () => write([beat()]), "write_heartbeats");
    expect(answers).toEqual([{ outcome: "unavailable" }]);
    expect(await everything()).toEqual(before);
  });

  test("behind a release brings no presence back", async () => {
    await bench.client.hdel((await bench.keys()).route, BOB);
    await bench.client.zrem((await bench.keys()).online, BOB);
    await write([beat()]);
    expect((await new PresenceStore({ ...pod, offlineAfterMs }).read(BOB)).status).toBe("stale");
  });

  test("tells the true time where Redis came to it late, and by a clock that was set meanwhile", async () => {
    const link = await ClockedLink.of(bench);
    const clocked = await bench.pod({ link, pod: "pod-c" });
    link.at = Date.now() + 3_600_000;
    const registered = presence(await clocked.accept(envelopeOf("agent.register", BOB, { ts: link.at })));
    link.at += 20_000;
    const envelope = envelopeOf("agent.heartbeat", BOB, { ts: link.at });
    const [answer] = await write([beat({ envelope }, { epoch: registered.epoch as number })], clocked, "pod-c");
    const ago = link.at - (presence(answer as Acceptance).lastSeen as number);
    expect(ago).toBeGreaterThanOrEqual(HEARD_AGO - 2);
    expect(ago).toBeLessThanOrEqual(HEARD_AGO + ROUND_TRIP);
  });
});

describe("in another window", () => {
  test("a write goes on behind restoring, and acceptance tells the agent what waits", async () => {
    await bench.ear("pod-a");
    pod.window.onChange(async () => void (await restoreAs("pod-a", pod, [held({ epoch })])));
    const reset = await bench.link("reset");
    await resetWindow(reset, { partitions: 1, deployId: "deploy-2", force: true });
    expect(await write([beat()])).toEqual([null]);
    expect((await bench.routes())[BOB]).toBe(`pod-a c1 ${epoch}`);
    const { sessionId } = await pod.request(ALICE, BOB);
    const { pending } = presence(await pod.heartbeat(BOB, "c1"));
    expect(pending.map((session) => session.sessionId)).toEqual([sessionId]);
    expect(await write([beat()])).toMatchObject([{ outcome: "accepted" }]);
  });
});

test("over several partitions heartbeats carry the highest epoch that their pod knows, and the clock rises to it", async () => {
  await bench.client.flushall();
  const many = await bench.pod({ pod: "pod-a", partitions: 2 });
  const options = { ...many, pod: "pod-a", logger: LOGGER };
  const writer = new HeartbeatWriter(options);
  const p = writer.partitionOf(BOB);
  const { epoch: given } = await many.register(BOB);
  const highest = (given as number) + 60_000_000_000;
  many.epochs.note(BOB, highest);
  const answers: readonly HeartbeatAnswer[] = await writer.write(p, [beat({}, { epoch: given as number })]);
  expect(answers).toMatchObject([{ outcome: "accepted" }]);
  const other = await bench.pod({ pod: "pod-b", partitions: 2 });
  expect((await other.register(BOB, "c9")).epoch).toBeGreaterThan(highest);
});
