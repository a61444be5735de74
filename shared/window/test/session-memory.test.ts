import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import { SESSION_LIMITS } from "protocol/contract/limits.ts";
import { requestOf } from "./envelopes.ts";
import { Bench, type Pod } from "./kit.ts";

const LONGEST_NAME = 63;
const MOST_BYTES = 800;
const bench = new Bench();
let pod: Pod;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ pod: "pod-a" });
  await bench.ear("pod-a");
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

const longest = (name: string) => `agent://${name.padEnd(LONGEST_NAME, "x")}`;

/** Bytes of all keys of these kinds, by kind. */
async function bytesOf(kinds: readonly string[]): Promise<Record<string, number>> {
  const bytes = Object.fromEntries(kinds.map((kind) => [kind, 0]));
  for (const key of await bench.client.keys("relay:*")) {
    const kind = key.split(":")[2] as string;
    if (kind in bytes) bytes[kind] = (bytes[kind] as number) + Number(await bench.client.memory("USAGE", key, "SAMPLES", 0));
  }
  return bytes;
}

const KINDS = ["session", "asked", "principal"];

test.each([
  ["one session, of a principal that has no other, at an online target", 1, 1, 1440],
  ["each of 200 of one principal at as many online targets", SESSION_LIMITS.maxPendingPerPrincipal, SESSION_LIMITS.maxPendingPerPrincipal, 1440],
  ["each of 200 of one principal at two targets", SESSION_LIMITS.maxPendingPerPrincipal, 2, 1440],
])("%s takes at most 800 bytes with the longest ids, its target's index and its proof included", async (_, count, targets, ttl) => {
  for (let n = 0; n < targets; n += 1) await pod.register(longest(`target-${n}-`));
  for (let n = 0; n < count; n += 1) {
    const request = requestOf(longest(`requester-${n % 20}-`), longest(`target-${n % targets}-`), ttl);
    const accepted = await pod.accept(request, { principal: `key:${"k".repeat(128)}` });
    expect(accepted).toMatchObject({ outcome: "accepted", delivery: "online" });
  }
  const bytes = await bytesOf(KINDS);
  const total = Object.values(bytes).reduce((sum, n) => sum + n, 0);
  expect(await bench.client.keys("relay:*:session:*")).toHaveLength(count);
  if (process.env.SHOW) console.log(count, targets, bytes, total / count);
  expect(total / count).toBeLessThanOrEqual(MOST_BYTES);
});
