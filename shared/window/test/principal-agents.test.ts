import { beforeEach, describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { everythingIn } from "../../../test/support/test-redis.ts";
import { PrincipalAgentsReader } from "../src/limits/principal-agents.ts";
import { holderDigestOf } from "../src/limits/principals.ts";
import { partitionOf, shareOf } from "../src/redis/partitions.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { envelopeOf } from "./envelopes.ts";
import { type Incoming, type Pod, redisBench } from "./kit.ts";

const bench = redisBench();
const TEAM = { principal: "key:team", hasNamespace: true } as const;
let pod: Pod;
const agent = (n: number) => `agent://team.a${n}`;

describe("the agents that a key may have:", () => {
  const MOST = 3;
  const REFUSED = { outcome: "agents_per_key" };
  const offlineSince = () => Date.now() - PRESENCE_LIMITS.offlineAfterMs - 60_000;
  let agentsKey: string;
  const register = (n: number, by: Incoming = TEAM) => pod.accept(envelopeOf("agent.register", agent(n)), by);
  const heartbeat = (n: number) => pod.accept(envelopeOf("agent.heartbeat", agent(n)), TEAM);
  const present = async () => bench.client.zrange((await bench.keys()).presence, "0", "-1");

  /** The agent was seen last so long ago that it is offline, by every record of it. */
  async function goOffline(n: number): Promise<void> {
    await bench.client.zadd(agentsKey, offlineSince(), agent(n));
    await bench.seed(agent(n), "pod-a c1 1", offlineSince());
  }

  beforeEach(async () => {
    pod = await bench.pod({ agentsPerKey: MOST });
    agentsKey = (await bench.keys()).agents(holderDigestOf(TEAM.principal));
    for (let n = 1; n <= MOST; n += 1) expect(await register(n)).toMatchObject({ outcome: "accepted" });
  });

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
      expect(await pod.accept(envelopeOf("agent.register", agent(2)), elsewhere)).toMatchObject({
        outcome: "accepted",
      });
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
});

describe("the list of a key's agents:", () => {
  const PARTITIONS = 3;
  const { offlineAfterMs } = PRESENCE_LIMITS;
  const register = (n: number) => pod.accept(envelopeOf("agent.register", agent(n)), TEAM);
  const read = (listed: readonly string[] = []) =>
    new PrincipalAgentsReader({ ...pod, offlineAfterMs }).read(TEAM.principal, listed);
  const keysOf = (id: string) => bench.keys(partitionOf(id, PARTITIONS));

  /** The agent was seen last at that time, and is counted for the team. */
  async function seen(id: string, at: number): Promise<void> {
    const { agents, presence } = await keysOf(id);
    await bench.client.zadd(agents(holderDigestOf(TEAM.principal)), at, id);
    await bench.client.zadd(presence, at, id);
  }

  beforeEach(async () => {
    pod = await bench.pod({ partitions: PARTITIONS, agentsPerKey: 100 });
  });

  test("The agents of a key are those that are counted for it in any partition, with their presence, those seen last first", async () => {
    for (let n = 0; n < 12; n += 1) expect(await register(n)).toMatchObject({ outcome: "accepted" });
    await pod.accept(envelopeOf("agent.register", "agent://stranger"), { ...TEAM, principal: "key:other" });
    await seen("agent://team.gone", Date.now() - offlineAfterMs - 60_000);
    const { total, agents, missing } = await read();
    expect([total, missing]).toEqual([13, []]);
    expect(new Set(agents.map((one) => one.agent))).toEqual(
      new Set([...Array.from({ length: 12 }, (_, n) => agent(n)), "agent://team.gone"]),
    );
    expect(new Set(agents.map((one) => partitionOf(one.agent, PARTITIONS))).size).toBe(PARTITIONS);
    expect(agents[0]).toMatchObject({ presence: { status: "online", onlineSince: expect.any(Number) } });
    expect(agents.at(-1)).toMatchObject({ agent: "agent://team.gone", presence: { status: "offline" } });
  });

  test("Those that are named stand among them, seen or not, and none twice", async () => {
    await register(1);
    await pod.register("agent://listed");
    const never = Array.from({ length: REDIS_LIMITS.routesBatch + 50 }, (_, n) => `agent://never-${n}`);
    const { total, agents } = await read([agent(1), "agent://listed", ...never]);
    expect([total, agents.length]).toEqual([never.length + 2, never.length + 2]);
    expect(
      agents
        .slice(0, 2)
        .map((one) => one.agent)
        .sort(),
    ).toEqual(["agent://listed", agent(1)]);
    expect(agents[2]).toMatchObject({ presence: { status: "not_seen", lastSeen: null } });
  });

  test("Of more than can be shown the newest are, and all are counted", async () => {
    const now = Date.now();
    const ids = Array.from({ length: REDIS_LIMITS.agentsShown + 40 }, (_, n) => `agent://team.b${n}`);
    await Promise.all(ids.map((id, n) => seen(id, now - 1000 * n)));
    const { total, agents } = await read();
    expect(total).toBe(ids.length);
    expect(agents.map((one) => one.agent)).toEqual(ids.slice(0, REDIS_LIMITS.agentsShown));
  });

  test("Reads wait for each other, and one that fails holds up none", async () => {
    for (let n = 0; n < 3; n += 1) await register(n);
    let underWay = 0;
    let most = 0;
    const run: typeof pod.link.run = async (...call) => {
      underWay += 1;
      most = Math.max(most, underWay);
      return await pod.link.run(...call).finally(() => {
        underWay -= 1;
      });
    };
    const link = Object.assign(Object.create(pod.link) as typeof pod.link, { run });
    const reader = new PrincipalAgentsReader({ link, window: pod.window, offlineAfterMs });
    const reads = await Promise.all(Array.from({ length: 6 }, () => reader.read(TEAM.principal, [])));
    expect(reads.map(({ total }) => total)).toEqual([3, 3, 3, 3, 3, 3]);
    expect(most).toBeLessThanOrEqual(PARTITIONS);
    link.run = () => Promise.reject(new Error("broken"));
    await expect(reader.read(TEAM.principal, [])).rejects.toThrow("broken");
    link.run = run;
    expect((await reader.read(TEAM.principal, [])).total).toBe(3);
  });
});
