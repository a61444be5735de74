import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { holderDigestOf } from "../src/holder-digest.ts";
import { PrincipalAgentsReader } from "../src/principal-agents.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { envelopeOf } from "./envelopes.ts";
import { Bench, type Pod } from "./kit.ts";

const PARTITIONS = 3;
const TEAM = { principal: "key:team", hasNamespace: true } as const;
const { offlineAfterMs } = PRESENCE_LIMITS;
const bench = new Bench();
let pod: Pod;

const agent = (n: number) => `agent://team.a${n}`;
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
  await bench.open();
  pod = await bench.pod({ partitions: PARTITIONS, agentsPerKey: 100 });
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

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
