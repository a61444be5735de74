import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { GATEWAY_KEY_LIMITS, PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { fillTo, unlimited } from "../../../test/support/test-redis.ts";
import { until } from "../../../test/support/until.ts";
import type { KeptCredential } from "../src/acceptance/acceptance.ts";
import type { HeldRoute } from "../src/presence/held-routes.ts";
import { readCredentials } from "../src/public-keys/credential-records.ts";
import { announceGatewayKey, readGatewayKeys } from "../src/public-keys/gateway-keys.ts";
import { controlKeys } from "../src/redis/keys.ts";
import { ALICE, BOB, envelopeOf } from "./envelopes.ts";
import { AGENTS_PER_KEY, ClockedLink, held, type Pod, redisBench, restoreAs, TEAM } from "./kit.ts";

const bench = redisBench();
const HOUR = 3_600_000;
let pod: Pod;

describe("what is known of an agent's credentials:", () => {
  let key: string;

  afterEach(() => unlimited(bench.client));
  beforeEach(async () => {
    pod = await bench.pod({ pod: "pod-a" });
    key = (await bench.keys()).credential(BOB);
  });

  const register = (credential: KeptCredential) => pod.accept(envelopeOf("agent.register", BOB), { credential });
  const presented = (keyId: string, token = `token-of-${keyId}`, expiresAt = Date.now() + HOUR): KeptCredential => ({
    expiresAt,
    presented: { keyId, token },
  });
  const known = async () =>
    (await readCredentials(pod.link, pod.window, BOB)).map(({ keyId, token }) => [keyId, token]);

  test("a register makes its credential known", async () => {
    await register(presented("jkt-a", "token"));
    const [found, ...more] = await readCredentials(pod.link, pod.window, BOB);
    expect([found, more]).toEqual([{ keyId: "jkt-a", token: "token" }, []]);
  });

  test("of an agent the two are known that it registered with last, the newest first, one of each key", async () => {
    for (const keyId of ["jkt-a", "jkt-b"]) await register(presented(keyId));
    expect(await known()).toEqual([
      ["jkt-b", "token-of-jkt-b"],
      ["jkt-a", "token-of-jkt-a"],
    ]);
    await register(presented("jkt-a", "renewed"));
    await register(presented("jkt-c"));
    expect(await known()).toEqual([
      ["jkt-c", "token-of-jkt-c"],
      ["jkt-a", "renewed"],
    ]);
  });

  test("a credential is forgotten when it ends, or with its agent's presence, whichever is first", async () => {
    const end = Date.now() + HOUR;
    await register(presented("jkt-a", "token", end));
    expect(await bench.client.pexpiretime(key)).toBe(end);
    await register(presented("jkt-a", "token", end + 100 * HOUR));
    const seen = Number(await bench.client.zscore((await bench.keys()).presence, BOB));
    expect(await bench.client.pexpiretime(key)).toBe(seen + PRESENCE_LIMITS.forgetAfterMs);
  });

  test("a heartbeat keeps the credentials of its agent for as long as its presence", async () => {
    await register(presented("jkt-a"));
    await bench.client.pexpire(key, 1000);
    await pod.accept(envelopeOf("agent.heartbeat", BOB), { credential: { expiresAt: Date.now() + 100 * HOUR } });
    const seen = Number(await bench.client.zscore((await bench.keys()).presence, BOB));
    expect(await bench.client.pexpiretime(key)).toBe(seen + PRESENCE_LIMITS.forgetAfterMs);
    expect(await known()).toEqual([["jkt-a", "token-of-jkt-a"]]);
  });

  test("a repeat, and a register that is refused, make nothing known", async () => {
    const envelope = envelopeOf("agent.register", BOB);
    await pod.accept(envelope, { credential: presented("jkt-a") });
    await pod.accept(envelope, { credential: presented("jkt-b") });
    expect(await known()).toEqual([["jkt-a", "token-of-jkt-a"]]);
  });

  test("while Redis is short of memory an agent is let in with a new credential, which is not made known: the old one stays", async () => {
    await register(presented("jkt-a"));
    await fillTo(bench.client, 0.8);
    await until("it is noticed that memory is short", () => pod.link.memory.isShort);
    expect(await register(presented("jkt-b"))).toMatchObject({ outcome: "accepted", status: "online" });
    expect(await known()).toEqual([["jkt-a", "token-of-jkt-a"]]);
  });

  test("an agent without presence has no credential", async () => {
    await register(presented("jkt-a"));
    await bench.client.zrem((await bench.keys()).presence, BOB);
    expect(await known()).toEqual([]);
  });
});

describe("the credentials of an agent that is restored", () => {
  beforeEach(async () => {
    pod = await bench.pod({ agentsPerKey: AGENTS_PER_KEY });
    await pod.window.known();
  });

  const restore = (routes: readonly HeldRoute[], name = "pod-a") => restoreAs(name, pod, routes);
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

  let key: string;

  beforeEach(async () => {
    key = (await bench.keys()).credential(BOB);
  });

  test("are known as soon as it is present again, until the last ends or its presence is forgotten", async () => {
    const records = ["jkt-b", "jkt-a"].map(recordOf);
    const expiresAt = Date.now() + HOUR;
    await restore([held({ credentials: { records, expiresAt } })]);
    expect(await readCredentials(pod.link, pod.window, BOB)).toEqual(records);
    expect(await bench.client.pexpiretime(key)).toBe(expiresAt);
    await bench.client.flushall();
    await pod.window.adoptOpenWindow();
    const before = Date.now();
    await restore([held({ credentials: { records, expiresAt: expiresAt + 100 * HOUR } })]);
    const again = (await bench.keys()).credential(BOB);
    expect(await bench.client.pexpiretime(again)).toBeGreaterThanOrEqual(before + PRESENCE_LIMITS.forgetAfterMs);
    expect(await bench.client.pexpiretime(again)).toBeLessThanOrEqual(Date.now() + PRESENCE_LIMITS.forgetAfterMs);
  });

  test("are none of one whose key is listed, or whose last has ended", async () => {
    await restore([held()]);
    expect(await bench.client.exists(key)).toBe(0);
    await restore([held({ epoch: 8, credentials: { records: [recordOf("jkt-a")], expiresAt: Date.now() - 1 } })]);
    expect(await bench.client.exists(key)).toBe(0);
  });

  test("are known where the connection has its agent already, and Redis lost them alone", async () => {
    await registers("jkt-a", "c1");
    await bench.client.del(key);
    await restore([heldUnder(["jkt-a"])]);
    expect(await known()).toEqual(["jkt-a"]);
  });

  test("change nothing of what is known of its connection, which may be newer, nor of when it ends", async () => {
    for (const keyId of ["jkt-a", "jkt-b"]) await registers(keyId, "c1");
    const end = Date.now() + HOUR / 2;
    await bench.client.pexpireat(key, end);
    await restore([heldUnder(["jkt-a"])]);
    await bench.client.hdel((await bench.keys()).route, BOB);
    await restore([heldUnder(["jkt-a"])]);
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
      for (const name of order) await restore([name === "pod-a" ? here : there], name);
      expect(await known()).toEqual(["jkt-b"]);
    }
  });

  test("stay unknown while Redis is short of memory, and where the agent is not entered", async () => {
    const agents = ["agent://team.a", "agent://team.b", BOB];
    await restore(agents.map((agent, n) => heldUnder(["jkt-a"], { agent, ...TEAM, epoch: n + 1 })));
    expect(await bench.client.exists(key)).toBe(0);
    await pod.register(ALICE);
    pod.link.memory.update("used_memory:9\r\nmaxmemory:10\r\n");
    await restore([heldUnder(["jkt-a"], { agent: ALICE })]);
    expect(await bench.client.exists((await bench.keys()).credential(ALICE))).toBe(0);
  });
});

test("a gateway's key is listed for 15 minutes after the gateway was last seen, and forgotten then", async () => {
  const link = await ClockedLink.of(bench);
  const [one, two] = [
    { keyId: "gateway-1", publicKey: "A".repeat(43) },
    { keyId: "gateway-2", publicKey: "B".repeat(43) },
  ];
  await announceGatewayKey(link, one);
  link.at += GATEWAY_KEY_LIMITS.listedForMs;
  expect(await readGatewayKeys(link)).toEqual([one]);
  link.at += 1;
  expect(await readGatewayKeys(link)).toEqual([]);
  await announceGatewayKey(link, two);
  expect(await readGatewayKeys(link)).toEqual([two]);
  expect(await bench.client.hkeys(controlKeys.gatewayKeys)).toEqual(["gateway-2"]);
  link.at += 1000;
  await announceGatewayKey(link, one);
  expect((await readGatewayKeys(link)).map(({ keyId }) => keyId).sort()).toEqual(["gateway-1", "gateway-2"]);
});
