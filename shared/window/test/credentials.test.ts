import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { fillTo, unlimited } from "../../../test/support/redis-memory.ts";
import { until } from "../../../test/support/until.ts";
import type { KeptCredential } from "../src/acceptance/acceptance.ts";
import { readCredentials } from "../src/credentials.ts";
import { envelopeOf } from "./envelopes.ts";
import { Bench, type Pod } from "./kit.ts";

const bench = new Bench();
const BOB = "agent://bob";
const HOUR = 3_600_000;
let pod: Pod;
let key: string;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ pod: "pod-a" });
  key = (await bench.keys()).credential(BOB);
});
afterEach(async () => {
  await unlimited(bench.client);
  await bench.clear();
});
afterAll(() => bench.redis.stop());

const register = (credential: KeptCredential) => pod.accept(envelopeOf("agent.register", BOB), { credential });
const presented = (keyId: string, token = `token-of-${keyId}`, expiresAt = Date.now() + HOUR): KeptCredential => ({
  expiresAt,
  presented: { keyId, token },
});
const known = async () => (await readCredentials(pod.link, pod.window, BOB)).map(({ keyId, token }) => [keyId, token]);

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
