import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import { SESSION_LIMITS } from "protocol/contract/limits.ts";
import { requestOf } from "./envelopes.ts";
import { Bench, type Pod } from "./kit.ts";

const { maxPendingPerPrincipal } = SESSION_LIMITS;
const LONGEST_NAME = 63;
const MOST_BYTES = { key: 800, issuer: 1000 };
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

/** What lasts as long as a session: its record, what is asked of its target, what its principal has pending. */
const KINDS = ["session", "asked", "principal"];

async function bytesOfSessions(): Promise<number> {
  const keys = (await bench.client.keys("relay:*")).filter((key) => KINDS.includes(key.split(":")[2] as string));
  const sizes = await Promise.all(keys.map((key) => bench.client.memory("USAGE", key, "SAMPLES", 0)));
  return sizes.reduce<number>((sum, size) => sum + Number(size), 0);
}

test.each([
  ["one, of a principal that has no other,", 1, 1, "key"],
  ["each of 200 of one principal, at as many targets,", maxPendingPerPrincipal, maxPendingPerPrincipal, "key"],
  ["each of 200 of one principal, at two targets,", maxPendingPerPrincipal, 2, "key"],
  ["one, of an issuer and agent that have no other,", 1, 1, "issuer"],
  ["each of 200 of one issuer, at as many targets,", maxPendingPerPrincipal, maxPendingPerPrincipal, "issuer"],
] as const)(
  "Of the pending sessions %s takes at most 800 bytes, 1,000 of an issuer, with the longest ids, its target's index and proof included",
  async (_, count, targets, kind) => {
    for (let n = 0; n < targets; n += 1) await pod.register(longest(`target-${n}-`));
    for (let n = 0; n < count; n += 1) {
      const request = requestOf(longest(`requester-${n % 20}-`), longest(`target-${n % targets}-`), 1440);
      const accepted = await pod.accept(request, { principal: `${kind}:${"k".repeat(128)}` });
      expect(accepted).toMatchObject({ outcome: "accepted", delivery: "online" });
    }
    expect(await bench.client.keys("relay:*:session:*")).toHaveLength(count);
    expect((await bytesOfSessions()) / count).toBeLessThanOrEqual(MOST_BYTES[kind]);
  },
);
