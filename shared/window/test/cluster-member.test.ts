import { afterAll, afterEach, beforeEach, expect, test } from "@jest/globals";
import { ClusterMember } from "../src/redis/cluster-member.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import { unavailable } from "../src/unavailable.ts";
import { Bench, LOGGER } from "./kit.ts";

const bench = new Bench();
let member: ClusterMember;

beforeEach(async () => {
  await bench.open();
  member = new ClusterMember({ url: bench.redis.url, name: "test", logger: LOGGER });
  bench.later(() => member.link.stop());
  member.start();
  await member.starting;
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

const refused = (answer: string) => expect(member.call(() => Promise.reject(unavailable(new Error(answer))))).rejects;

test("A primary that refuses everything was cut off for a while, until it answers again", async () => {
  expect(member.silentSince).toBeUndefined();
  await refused("CLUSTERDOWN The cluster is down").toMatchObject({ code: "unavailable" });
  expect(member.link.up).toBe(true);
  const since = member.silentSince as number;
  expect(since).toBeLessThanOrEqual(performance.now() - REDIS_LIMITS.unheardMs);
  await refused("CLUSTERDOWN The cluster is down").toMatchObject({ code: "unavailable" });
  expect(member.silentSince).toBe(since);
  await member.call((link) => link.command("PING"));
  expect(member.silentSince).toBeUndefined();
});

test.each(["MOVED 1 127.0.0.1:1", "CLUSTERDOWN Hash slot not served", "TRYAGAIN"])(
  "A primary that says %s was not cut off",
  async (answer) => {
    await refused(answer).toMatchObject({ code: "unavailable" });
    expect(member.silentSince).toBeUndefined();
  },
);
