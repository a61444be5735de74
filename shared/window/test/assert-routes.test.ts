import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { CREDENTIAL_LIMITS, PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { readCredentials } from "../src/credentials.ts";
import { holderDigestOf } from "../src/holder-digest.ts";
import { PresenceStore } from "../src/presence.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import { resetWindow } from "../src/reset.ts";
import { type HeldRoute, RouteAsserter } from "../src/route-asserter.ts";
import { RouteReleaser } from "../src/routes.ts";
import { envelopeOf, messageOf, presence } from "./envelopes.ts";
import { Bench, type Pod } from "./kit.ts";

const bench = new Bench();
const [ALICE, BOB] = ["agent://alice", "agent://bob"];
const { offlineAfterMs, staleAfterMs, stabilityHoldMs } = PRESENCE_LIMITS;
const KEY = "key:team" as const;
const TEAM = { principal: KEY, hasNamespace: true } as const;
const AGENTS_PER_KEY = 2;
const HOUR = 3_600_000;

let pod: Pod;
let store: PresenceStore;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ agentsPerKey: AGENTS_PER_KEY });
  store = new PresenceStore({ ...pod, offlineAfterMs });
  await pod.window.known();
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

/** What a pod holds of BOB on its connection c1, heard just now. */
function held(changes: Partial<HeldRoute> = {}): HeldRoute {
  const route = { agent: BOB, connection: "c1", epoch: 7, heardAt: performance.now(), isCongested: false };
  return { ...route, principal: "key:key-1", credentials: undefined, ...changes };
}

/** The same with credentials for these keys, the newest first. */
function heldUnder(keyIds: readonly string[], changes: Partial<HeldRoute> = {}): HeldRoute {
  return held({ credentials: { records: keyIds.map(recordOf), expiresAt: Date.now() + HOUR }, ...changes });
}

const recordOf = (keyId: string) => ({ keyId, token: `token-of-${keyId}` });

/** A register that presents a credential for this key. */
async function registers(keyId: string, connection: string): Promise<void> {
  const credential = { expiresAt: Date.now() + HOUR, presented: recordOf(keyId) };
  await pod.accept(envelopeOf("agent.register", BOB), { connection, credential });
}

/** The keys whose credentials look-ups find. */
async function known(): Promise<string[]> {
  return (await readCredentials(pod.link, pod.window, BOB)).map(({ keyId }) => keyId);
}

/** A pod asserts; of each route the epoch of the newer owner, or null. */
async function asserts(routes: readonly HeldRoute[], name = "pod-a", of = pod): Promise<(number | null)[]> {
  const { link, window } = of;
  const options = { link, window, partitions: 1, pod: name, offlineAfterMs, agentsPerKey: AGENTS_PER_KEY };
  return await new RouteAsserter(options).assert(0, routes);
}

describe("an assert", () => {
  test("brings an agent back that Redis lost, under its epoch: envelopes reach it", async () => {
    const ear = await bench.ear("pod-a");
    expect(await asserts([held()])).toEqual([null]);
    expect(await bench.routes()).toEqual({ [BOB]: "pod-a c1 7" });
    expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ delivery: "online" });
    expect(await ear.lines()).toMatchObject([expect.stringMatching(/^deliver c1 7 agent:\/\/bob - /)]);
    expect((await store.count()).ok).toBe(1);
  });

  test("changes nothing where the connection has the agent, under whatever epoch", async () => {
    const { epoch } = await pod.register(BOB);
    const before = await bench.client.hgetall((await bench.keys()).route);
    expect(await asserts([held(), held({ epoch: (epoch as number) + 1 })])).toEqual([null, null]);
    expect(await bench.client.hgetall((await bench.keys()).route)).toEqual(before);
  });

  test("of an older epoch takes nothing, and tells the newer one", async () => {
    await bench.seed(BOB, "pod-b c9 8", Date.now());
    expect(await asserts([held()])).toEqual([8]);
    expect(await bench.routes()).toEqual({ [BOB]: "pod-b c9 8" });
  });

  test("of a newer epoch takes the agent, and its older owner is told", async () => {
    const ear = await bench.ear("pod-b");
    await bench.seed(BOB, "pod-b c9 6", Date.now());
    expect(await asserts([held()])).toEqual([null]);
    expect(await bench.routes()).toEqual({ [BOB]: "pod-a c1 7" });
    expect(await ear.lines()).toEqual([`superseded c9 7 ${BOB}`]);
  });

  test("whichever pod comes first, the agent that moved is where it moved to", async () => {
    const here = held({ epoch: 7 });
    const there = held({ epoch: 8, connection: "c9" });
    for (const order of [
      ["pod-a", "pod-b"],
      ["pod-b", "pod-a"],
    ]) {
      await bench.client.del((await bench.keys()).route);
      for (const name of order) await asserts([name === "pod-a" ? here : there], name);
      expect(await bench.routes()).toEqual({ [BOB]: "pod-b c9 8" });
    }
  });

  test("is followed by epochs that are newer, though the clock that gave them is gone, and that of Redis was set back", async () => {
    const ahead = 2 * Date.now() * 1000;
    await asserts([held({ epoch: ahead })]);
    const { epoch } = await pod.register(BOB, "c2");
    expect(epoch).toBeGreaterThan(ahead);
  });

  test("says how old it is: the agent was last heard when the pod heard it, and its hold begins anew", async () => {
    const ageMs = staleAfterMs / 2;
    const before = Date.now();
    await asserts([held({ heardAt: performance.now() - ageMs })]);
    const { status, lastSeen, stableInMs } = await store.read(BOB);
    expect(status).toBe("online");
    expect(lastSeen).toBeLessThanOrEqual(Date.now() - ageMs);
    expect(lastSeen).toBeGreaterThan(before - staleAfterMs);
    expect(stableInMs).toBeGreaterThan(0);
    expect(stableInMs).toBeLessThanOrEqual(stabilityHoldMs);
  });

  test("does not bring an agent online that is not heard of any more", async () => {
    await asserts([held({ heardAt: performance.now() - staleAfterMs - 1 })]);
    expect((await store.read(BOB)).status).toBe("stale");
    expect((await store.count()).ok).toBe(0);
    expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ delivery: "stale" });
  });

  test("does not make an agent be seen later, or earlier, than it was", async () => {
    const seenAt = Date.now() - 1000;
    await bench.seed(BOB, "pod-b c9 6", seenAt);
    await asserts([held({ heardAt: performance.now() - staleAfterMs })]);
    expect(await bench.client.zscore((await bench.keys()).presence, BOB)).toBe(String(seenAt));
    await asserts([held({ agent: ALICE, heardAt: performance.now() + 60_000 })]);
    expect((await store.read(ALICE)).lastSeen).toBeLessThanOrEqual(Date.now());
  });

  test("keeps the mark of a congested connection", async () => {
    await asserts([held({ isCongested: true })]);
    expect(await pod.accept(messageOf(ALICE, BOB))).toMatchObject({ delivery: "stale" });
  });

  test("counts the agents of a namespace as registers do, and enters none beyond what there may be", async () => {
    const agents = ["agent://team.a", "agent://team.b", "agent://team.c"];
    await asserts(agents.map((agent, n) => held({ agent, ...TEAM, epoch: n + 1 })));
    expect(Object.keys(await bench.routes())).toEqual(agents.slice(0, AGENTS_PER_KEY));
    expect(await bench.client.zcard((await bench.keys()).agents(holderDigestOf(KEY)))).toBe(AGENTS_PER_KEY);
    expect(await bench.client.pttl((await bench.keys()).agents(holderDigestOf(KEY)))).toBeGreaterThan(0);
  });

  test("enters no agent that Redis does not know while it is short of memory", async () => {
    await pod.register(ALICE);
    await bench.client.hdel((await bench.keys()).route, ALICE);
    pod.link.memory.update("used_memory:9\r\nmaxmemory:10\r\n");
    await asserts([held(), held({ agent: ALICE })]);
    expect(Object.keys(await bench.routes())).toEqual([ALICE]);
  });

  test("does nothing in another window than the one that its pod is in", async () => {
    await resetWindow(pod.link, { partitions: 1, deployId: "next", force: true });
    await expect(asserts([held()])).rejects.toMatchObject({ code: "unavailable" });
    expect(await bench.routes()).toEqual({});
  });

  test("does nothing when Redis comes to it after its pod was told that it did not", async () => {
    const { id } = pod.window.current;
    const { presence, online, route, clock } = await bench.keys();
    const names = [partitionKeys.window(0), presence, online, route, clock];
    const args = [
      Date.now() - 1,
      id,
      partitionKeys.podChannelPrefix(0),
      1,
      1,
      0,
      "pod-a",
      BOB,
      "c1",
      7,
      Date.now(),
      "",
      "",
      "",
      "",
      "",
      "",
    ];
    expect(await pod.link.run("assert_routes", names, args)).toMatchObject(["late", expect.any(String)]);
    expect(await bench.routes()).toEqual({});
  });
});

describe("the credentials of an agent that is asserted", () => {
  let key: string;

  beforeEach(async () => {
    key = (await bench.keys()).credential(BOB);
  });

  test("are known as soon as it is present again, until the last ends or its presence is forgotten", async () => {
    const records = ["jkt-b", "jkt-a"].map(recordOf);
    const expiresAt = Date.now() + HOUR;
    await asserts([held({ credentials: { records, expiresAt } })]);
    expect(await readCredentials(pod.link, pod.window, BOB)).toEqual(records);
    expect(await bench.client.pexpiretime(key)).toBe(expiresAt);
    await bench.client.flushall();
    await pod.window.adopt();
    const before = Date.now();
    await asserts([held({ credentials: { records, expiresAt: expiresAt + 100 * HOUR } })]);
    const again = (await bench.keys()).credential(BOB);
    expect(await bench.client.pexpiretime(again)).toBeGreaterThanOrEqual(before + PRESENCE_LIMITS.forgetAfterMs);
    expect(await bench.client.pexpiretime(again)).toBeLessThanOrEqual(Date.now() + PRESENCE_LIMITS.forgetAfterMs);
  });

  test("are none of one whose key is listed, or whose last has ended", async () => {
    await asserts([held()]);
    expect(await bench.client.exists(key)).toBe(0);
    await asserts([held({ epoch: 8, credentials: { records: [recordOf("jkt-a")], expiresAt: Date.now() - 1 } })]);
    expect(await bench.client.exists(key)).toBe(0);
  });

  test("are known where the connection has its agent already, and Redis lost them alone", async () => {
    await registers("jkt-a", "c1");
    await bench.client.del(key);
    await asserts([heldUnder(["jkt-a"])]);
    expect(await known()).toEqual(["jkt-a"]);
  });

  test("change nothing of what is known of its connection, which may be newer, nor of when it ends", async () => {
    for (const keyId of ["jkt-a", "jkt-b"]) await registers(keyId, "c1");
    const end = Date.now() + HOUR / 2;
    await bench.client.pexpireat(key, end);
    await asserts([heldUnder(["jkt-a"])]);
    await bench.client.hdel((await bench.keys()).route, BOB);
    await asserts([heldUnder(["jkt-a"])]);
    expect(await known()).toEqual(["jkt-b", "jkt-a"]);
    expect(await bench.client.pexpiretime(key)).toBe(end);
  });

  test("are those of the newer owner, whichever pod comes first", async () => {
    const here = heldUnder(["jkt-a"]);
    const there = heldUnder(["jkt-b"], { epoch: 8, connection: "c9" });
    for (const order of [
      ["pod-a", "pod-b"],
      ["pod-b", "pod-a"],
    ]) {
      await bench.client.del((await bench.keys()).route, key);
      for (const name of order) await asserts([name === "pod-a" ? here : there], name);
      expect(await known()).toEqual(["jkt-b"]);
    }
  });

  test("stay unknown while Redis is short of memory, and where the agent is not entered", async () => {
    const agents = ["agent://team.a", "agent://team.b", BOB];
    await asserts(agents.map((agent, n) => heldUnder(["jkt-a"], { agent, ...TEAM, epoch: n + 1 })));
    expect(await bench.client.exists(key)).toBe(0);
    await pod.register(ALICE);
    pod.link.memory.update("used_memory:9\r\nmaxmemory:10\r\n");
    await asserts([heldUnder(["jkt-a"], { agent: ALICE })]);
    expect(await bench.client.exists((await bench.keys()).credential(ALICE))).toBe(0);
  });
});

describe("what waits for an agent", () => {
  test("that was asserted is told with its next heartbeat, once", async () => {
    const { sessionId } = await pod.request(ALICE, BOB);
    await asserts([held()]);
    expect(await pod.heartbeat(BOB)).toMatchObject({ epoch: 7, pending: [{ sessionId }] });
    expect(await pod.heartbeat(BOB)).toMatchObject({ epoch: 7, pending: [] });
  });
});

test("a release takes back what was asserted", async () => {
  await asserts([held()]);
  const releaser = new RouteReleaser({ ...pod, pod: "pod-a" });
  releaser.release([held()]);
  await releaser.flush();
  expect(await bench.routes()).toEqual({});
});

test("two hundred routes go with one call, which stays within a MiB with the longest credentials there are", async () => {
  const { link, window } = pod;
  const asserter = new RouteAsserter({ link, window, partitions: 1, pod: "pod-a", offlineAfterMs });
  const token = "x".repeat(CREDENTIAL_LIMITS.maxCharacters);
  const records = ["a", "b"].map((letter) => ({ keyId: `jkt-${letter.repeat(43)}`, token }));
  const credentials = { records, expiresAt: Date.now() + HOUR };
  const name = `agent://${"b".repeat(60)}`;
  const routes = Array.from({ length: 201 }, (_, n) => held({ agent: name + n, credentials }));
  const slices = asserter.slices(routes);
  expect(slices.map(([, { length }]) => length)).toEqual([200, 1]);
  const calls = jest.spyOn(link, "run");
  for (const [p, slice] of slices) await asserter.assert(p, slice);
  const sizes = calls.mock.calls.map(([, keys, args = []]) => [...keys, ...args].join(" ").length);
  expect(Math.max(...sizes)).toBeLessThan(REDIS_LIMITS.acceptanceBatchBytes);
  expect(Object.keys(await bench.routes())).toHaveLength(201);
});

test("a register is heard when it comes, and a repeat of it is no sign of life", async () => {
  const register = envelopeOf("agent.register", BOB);
  const sentAt = performance.now();
  const { epoch, heardAt } = presence(await pod.accept(register));
  expect(heardAt).toBeGreaterThanOrEqual(sentAt);
  expect(heardAt).toBeLessThanOrEqual(performance.now());
  await bench.seed(BOB, `pod-a c1 ${epoch}`, Date.now() - staleAfterMs);
  const repeat = presence(await pod.accept(register));
  expect(repeat).toMatchObject({ outcome: "duplicate", epoch });
  expect(repeat.heardAt).toBeLessThanOrEqual(performance.now() - staleAfterMs);
});
