import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import { fillTo, unlimited } from "../../../test/support/redis-memory.ts";
import { countConnections, leaseConnections } from "../src/pod-connections.ts";
import { controlKeys } from "../src/redis/keys.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import { Bench, ClockedLink } from "./kit.ts";

const bench = new Bench();
let link: ClockedLink;

beforeEach(async () => {
  await bench.open();
  link = await ClockedLink.of(bench);
});
afterEach(async () => {
  await unlimited(bench.client);
  await bench.clear();
});
afterAll(() => bench.redis.stop());

test("The connections of all pods are added up, each pod's as it told them last", async () => {
  expect(await countConnections(link)).toBe(0);
  await leaseConnections(link, "a", 3);
  await leaseConnections(link, "b", 20);
  await leaseConnections(link, "a", 1);
  expect(await countConnections(link)).toBe(21);
});

test("Those of a pod that tells no more are gone with its lease, and not before", async () => {
  await leaseConnections(link, "a", 3);
  link.at += REDIS_LIMITS.shareLeaseMs;
  await leaseConnections(link, "b", 20);
  expect(await countConnections(link)).toBe(23);
  link.at += 1;
  await leaseConnections(link, "b", 20);
  expect(await countConnections(link)).toBe(20);
});

test("Those of the last pod are forgotten with its lease", async () => {
  await leaseConnections(link, "a", 3);
  const left = await bench.client.pttl(controlKeys.connections);
  expect(left).toBeGreaterThan(0);
  expect(left).toBeLessThanOrEqual(REDIS_LIMITS.shareLeaseMs);
});

test("A pod goes on telling them while Redis is full", async () => {
  await leaseConnections(link, "a", 3);
  await fillTo(bench.client, 1.1);
  await leaseConnections(link, "a", 4);
  expect(await countConnections(link)).toBe(4);
});
