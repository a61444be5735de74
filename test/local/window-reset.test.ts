import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { Redis } from "ioredis";
import { controlKeys, partitionKeys } from "relay-window/redis/keys.ts";
import { TestRedis } from "../support/test-redis.ts";
import { resetCommand } from "./commands.ts";

describe("npm run window:reset", () => {
  const redis = new TestRedis();
  let client: Redis;

  beforeAll(async () => {
    await redis.start();
    client = new Redis(redis.path);
  });
  beforeEach(() => client.flushall());
  afterAll(async () => {
    client.disconnect();
    await redis.stop();
  });

  const reset = (deployId: string, ...args: string[]) =>
    resetCommand(args, { REDIS_URL: redis.url, RELAY_DEPLOY_ID: deployId });

  test("opens a window for each new deploy, and keeps it while the deploy stays the same", async () => {
    const first = await reset("v1");
    expect(first).toEqual({ code: 0, stderr: "", stdout: expect.stringMatching(/^window opened: win_\w+.*\n$/) });
    const [id] = /win_\w+/.exec(first.stdout) as RegExpExecArray;
    expect(await reset("v1")).toEqual({ code: 0, stderr: "", stdout: `window kept: ${id}\n` });

    const second = await reset("v2");
    expect(second).toMatchObject({ code: 0, stdout: expect.stringContaining("window opened") });
    expect(second.stdout).not.toContain(id);
  });

  test("opens a new one for the same deploy when it is forced to, and leaves the replay guard alone", async () => {
    await reset("v1");
    await client.sadd(partitionKeys.seen(0, 1), "digest");
    await client.set(partitionKeys.limit(0, "x"), 1);
    expect(await reset("v1", "--force")).toMatchObject({ code: 0, stdout: expect.stringContaining("window opened") });
    const records = [controlKeys.window, controlKeys.salt, partitionKeys.window(0)];
    const left = [...records, partitionKeys.seen(0, 1), partitionKeys.limit(0, "x")];
    expect((await client.keys("*")).sort()).toEqual(left.sort());
  });

  test("touches nothing in a database that holds keys of others", async () => {
    await client.set("theirs", 1);
    const { code, stdout, stderr } = await reset("v1");
    expect([code, stdout]).toEqual([1, ""]);
    expect(stderr).toMatch(/\b1 keys\b.*REDIS_URL/);
    expect(await client.keys("*")).toEqual(["theirs"]);
  });

  test("refuses a Redis Cluster with one partition", async () => {
    const { code, stderr } = await resetCommand([], { REDIS_URL: "redis-cluster://:secret@127.0.0.1:1" });
    expect([code, stderr]).toEqual([78, expect.stringContaining("RELAY_PARTITIONS")]);
    expect(stderr).not.toContain("secret");
  });

  test("names the reason when Redis cannot be used, without its password", async () => {
    const { code, stderr } = await resetCommand([], { REDIS_URL: "redis://:secret@127.0.0.1:1" });
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^[^\n]*\brefused\b[^\n]*\n$/)]);
    expect(stderr).not.toContain("secret");
  });

  test("names invalid settings, and refuses an invalid command line", async () => {
    expect(await resetCommand([], { RELAY_PARTITIONS: "0" })).toMatchObject({
      code: 78,
      stderr: expect.stringMatching(/REDIS_URL [\s\S]*RELAY_PARTITIONS /),
    });
    expect((await reset("v1", "--all")).code).toBe(2);
  });
});
