import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { everythingIn } from "../../../test/support/redis-dump.ts";
import { holderDigestOf } from "../src/holder-digest.ts";
import { shareOf } from "../src/redis/partitions.ts";
import { envelopeOf } from "./envelopes.ts";
import { Bench, type Incoming, type Pod } from "./kit.ts";

const bench = new Bench();
const MOST = 3;
const TEAM = { principal: "key:team", hasNamespace: true } as const;
const REFUSED = { outcome: "agents_per_key" };
const offlineSince = () => Date.now() - PRESENCE_LIMITS.offlineAfterMs - 60_000;

let pod: Pod;
let agentsKey: string;

const agent = (n: number) => `agent://team.a${n}`;
const register = (n: number, by: Incoming = TEAM) => pod.accept(envelopeOf("agent.register", agent(n)), by);
const heartbeat = (n: number) => pod.accept(envelopeOf("agent.heartbeat", agent(n)), TEAM);
const present = async () => bench.client.zrange((await bench.keys()).presence, "0", "-1");

/** The agent was seen last so long ago that it is offline, by every record of it. */
async function goOffline(n: number): Promise<void> {
  await bench.client.zadd(agentsKey, offlineSince(), agent(n));
  await bench.seed(agent(n), "pod-a c1 1", offlineSince());
}

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ agentsPerKey: MOST });
  agentsKey = (await bench.keys()).agents(holderDigestOf(TEAM.principal));
  for (let n = 1; n <= MOST; n += 1) expect(await register(n)).toMatchObject({ outcome: "accepted" });
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

describe("a key of a namespace that has as many agents as it may", () => {
  test("brings no further one, by register or heartbeat, and nothing is kept of the refused envelope", async () => {
    const before = await everythingIn(bench.client);
    expect(await register(4)).toEqual(REFUSED);
    expect(await heartbeat(5)).toEqual(REFUSED);
    expect(await everythingIn(bench.client)).toEqual(before);
  });

  test("goes on with those that it has, wherever they connect", async () => {
    expect(await heartbeat(1)).toMatchObject({ outcome: "accepted" });
    const elsewhere = { ...TEAM, connection: "c2" };
    expect(await pod.accept(envelopeOf("agent.register", agent(2)), elsewhere)).toMatchObject({ outcome: "accepted" });
    await bench.client.hdel((await bench.keys()).route, agent(3));
    await bench.client.zrem((await bench.keys()).online, agent(3));
    expect(await heartbeat(3)).toMatchObject({ outcome: "accepted" });
  });

  test("takes no room from other keys, nor from keys whose agents are listed one by one", async () => {
    expect(await register(4, { ...TEAM, principal: "key:other" })).toMatchObject({ outcome: "accepted" });
    expect(await register(5, { ...TEAM, hasNamespace: false })).toMatchObject({
      outcome: "accepted",
    });
  });

  test("gives the place of the one unseen for longest, once it is offline, to a new one: that one is forgotten", async () => {
    await goOffline(2);
    const envelope = envelopeOf("agent.register", agent(4));
    expect(await pod.accept(envelope, TEAM)).toMatchObject({ outcome: "accepted" });
    expect(await present()).toEqual([agent(1), agent(3), agent(4)]);
    expect(await bench.routes()).not.toHaveProperty([agent(2)]);
    expect(await register(2)).toEqual(REFUSED);
  });

  test("does not have an agent forgotten that another key has brought since", async () => {
    await bench.client.zadd(agentsKey, offlineSince(), agent(2));
    expect(await register(4)).toMatchObject({ outcome: "accepted" });
    expect(await present()).toContain(agent(2));
    expect(await bench.routes()).toHaveProperty([agent(2)]);
  });

  test("loses no agent that sends heartbeats", async () => {
    await goOffline(1);
    expect(await heartbeat(1)).toMatchObject({ outcome: "accepted" });
    expect(await register(4)).toEqual(REFUSED);
  });
});

test("what is kept of a key's agents goes a day after the last of them was seen", async () => {
  const leftMs = await bench.client.pttl(agentsKey);
  expect(leftMs).toBeGreaterThan(PRESENCE_LIMITS.forgetAfterMs - 60_000);
  expect(leftMs).toBeLessThanOrEqual(PRESENCE_LIMITS.forgetAfterMs);
});

test("a lower limit is met in the end, and no limit at all lets everybody in", async () => {
  pod = await bench.pod({ agentsPerKey: 1 });
  await Promise.all([1, 2, 3].map(goOffline));
  const outcomes = [await register(4), await register(4), await register(4)].map(({ outcome }) => outcome);
  expect(outcomes).toEqual(["agents_per_key", "agents_per_key", "accepted"]);
  pod = await bench.pod({ agentsPerKey: 0 });
  expect(await Promise.all([5, 6, 7].map((n) => register(n)))).toMatchObject(Array(3).fill({ outcome: "accepted" }));
});

test("agents that come in one call are counted with those before them", async () => {
  await bench.client.flushall();
  pod = await bench.pod({ agentsPerKey: MOST });
  const outcomes = await Promise.all([1, 2, 3, 4, 5].map((n) => register(n)));
  expect(outcomes.filter(({ outcome }) => outcome === "accepted")).toHaveLength(MOST);
  expect(await bench.client.zcard((await bench.keys()).agents(holderDigestOf(TEAM.principal)))).toBe(MOST);
});

test("agents that come in one call each take the place of one that is offline, of their own principal", async () => {
  for (const n of [1, 2]) await goOffline(n);
  const others = { principal: "key:other", hasNamespace: true } as const;
  const incoming = [4, 5, 6].map((n) => register(n));
  const outcomes = await Promise.all([...incoming, ...[7, 8, 9].map((n) => register(n, others))]);
  expect(outcomes.map(({ outcome }) => outcome)).toEqual([
    "accepted",
    "accepted",
    "agents_per_key",
    ...Array(3).fill("accepted"),
  ]);
  expect((await present()).toSorted()).toEqual([3, 4, 5, 7, 8, 9].map(agent));
});

test("a register mends a time that lies ahead, of a clock that was set back: its agent makes room once it is offline", async () => {
  await bench.client.zadd(agentsKey, Date.now() + 3_600_000, agent(1));
  await register(1);
  expect(Number(await bench.client.zscore(agentsKey, agent(1)))).toBeLessThanOrEqual(Date.now() + 1000);
});

test("an agent that its key has not brought before is counted, also where it is known", async () => {
  await bench.client.del(agentsKey);
  pod = await bench.pod({ agentsPerKey: MOST });
  const outcomes = await Promise.all([1, 2, 3, 4].map((n) => register(n)));
  expect(outcomes.map(({ outcome }) => outcome)).toEqual(["accepted", "accepted", "accepted", "agents_per_key"]);
});

test("over several partitions a key has at least its limit, and not much more", async () => {
  const limit = 100;
  const partitions = 4;
  await bench.client.flushall();
  pod = await bench.pod({ agentsPerKey: limit, partitions });
  const outcomes = await Promise.all(Array.from({ length: 4 * limit }, (_, n) => register(n)));
  const accepted = outcomes.filter(({ outcome }) => outcome === "accepted").length;
  expect(shareOf(limit, 1)).toBe(limit);
  expect(accepted).toBeGreaterThanOrEqual(limit);
  expect(accepted).toBe(partitions * shareOf(limit, partitions));
  expect(accepted).toBeLessThanOrEqual(1.6 * limit);
});

test("An issuer has a number of its own", async () => {
  const acme = { principal: "issuer:acme", hasNamespace: true } as const;
  const bounded = await bench.pod({ agentsPerKey: 1, agentsPerIssuer: 2 });
  const bring = (n: number) => bounded.accept(envelopeOf("agent.register", `agent://acme.a${n}`), acme);
  expect([await bring(1), await bring(2)]).toMatchObject([{ outcome: "accepted" }, { outcome: "accepted" }]);
  expect(await bring(3)).toEqual(REFUSED);
});
