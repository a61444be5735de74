import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { readCredentials } from "../src/credentials.ts";
import type { HeldRoute } from "../src/route-asserter.ts";
import { ALICE, BOB, envelopeOf } from "./envelopes.ts";
import { AGENTS_PER_KEY, assertAs, Bench, held, type Pod, TEAM } from "./kit.ts";

const HOUR = 3_600_000;
const bench = new Bench();
let pod: Pod;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ agentsPerKey: AGENTS_PER_KEY });
  await pod.window.known();
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

const asserts = (routes: readonly HeldRoute[], name = "pod-a") => assertAs(name, pod, routes);
const recordOf = (keyId: string) => ({ keyId, token: `token-of-${keyId}` });

/** What a pod holds of BOB, with credentials for these keys, the newest first. */
function heldUnder(keyIds: readonly string[], changes: Partial<HeldRoute> = {}): HeldRoute {
  return held({ credentials: { records: keyIds.map(recordOf), expiresAt: Date.now() + HOUR }, ...changes });
}

/** A register that presents a credential for this key. */
async function registers(keyId: string, connection: string): Promise<void> {
  const credential = { expiresAt: Date.now() + HOUR, presented: recordOf(keyId) };
  await pod.accept(envelopeOf("agent.register", BOB), { connection, credential });
}

/** The keys whose credentials look-ups find. */
async function known(): Promise<string[]> {
  return (await readCredentials(pod.link, pod.window, BOB)).map(({ keyId }) => keyId);
}

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
    await pod.window.adoptOpenWindow();
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
