import { expect, test } from "@jest/globals";
import { ReplicaProgress } from "../src/redis/replica-progress.ts";

/** INFO of a primary, and of what its replicas acknowledged: state and offset of each. */
function info(offset: number, ...replicas: readonly (readonly [string, number])[]): string {
  const lines = replicas.map(
    ([state, acked], n) => `slave${n}:ip=10.0.0.${n},port=6379,state=${state},offset=${acked},lag=0`,
  );
  return ["# Replication", "role:master", ...lines, `master_repl_offset:${offset}`, ""].join("\r\n");
}

function untilOf(...told: readonly (readonly [number, string])[]): number | undefined {
  const progress = new ReplicaProgress();
  for (const [at, said] of told) progress.told(said, at);
  return progress.receivedUntil;
}

test("What a primary answered is received up to the last moment whose writes its replica acknowledged", () => {
  expect(untilOf([1000, info(50, ["online", 50])])).toBe(1000);
  expect(untilOf([1000, info(50, ["online", 40])])).toBeUndefined();
  expect(untilOf([1000, info(50, ["online", 40])], [2000, info(90, ["online", 50])])).toBe(1000);
  expect(untilOf([1000, info(50, ["online", 50])], [2000, info(90, ["online", 89])])).toBe(1000);
});

test("Of several replicas any may be promoted: the one counts that has least, and one that is not online has nothing", () => {
  expect(untilOf([1000, info(50, ["online", 50], ["online", 49])])).toBeUndefined();
  expect(untilOf([1000, info(50, ["online", 50], ["send_bulk", 50])])).toBeUndefined();
});

test("While a replica is away, what it had received last stays, and it goes on once it is back", () => {
  const away = Array.from({ length: 300 }, (_, n) => [2000 + n, info(60 + n)] as const);
  expect(untilOf([1000, info(50, ["online", 50])], ...away)).toBe(1000);
  expect(untilOf([1000, info(50, ["online", 50])], ...away, [5000, info(400, ["online", 400])])).toBe(5000);
});

test("Replicas that are online are counted, and how far the last of them is behind", () => {
  const progress = new ReplicaProgress();
  expect(progress.replicas).toBeUndefined();
  progress.told(info(50, ["online", 50], ["online", 20], ["send_bulk", 0]), 1000);
  expect(progress.replicas).toEqual({ count: 2, lagBytes: 30 });
  progress.told(info(60), 2000);
  expect(progress.replicas).toEqual({ count: 0, lagBytes: 0 });
});

test("A Redis that tells nothing of replication has received nothing", () => {
  expect(untilOf([1000, "redis_version:7.0.15\r\n"])).toBeUndefined();
});
