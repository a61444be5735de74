import { stat } from "node:fs/promises";
import { afterAll, afterEach, beforeAll, describe, expect, jest, test } from "@jest/globals";
import { Redis } from "ioredis";
import { LocalRelay } from "../../deploy/local/relay.ts";
import { RedisProxy } from "../../test/support/redis-proxy.ts";
import { TestRedis } from "../../test/support/test-redis.ts";
import { watchLeaks } from "../../test/support/until.ts";
import { waitForAnswers } from "../../test/support/use.ts";
import { startRelay } from "../src/index.ts";
import { TestKeys } from "../src/test-keys.ts";

const noLeaks = watchLeaks();
waitForAnswers();
afterAll(() => noLeaks());
afterEach(() => {
  jest.restoreAllMocks();
});

/** Runs while variables of this process have other values. */
async function withVariables<T>(values: Record<string, string>, work: () => Promise<T>): Promise<T> {
  const former = { ...process.env };
  Object.assign(process.env, values);
  try {
    return await work();
  } finally {
    for (const name of Object.keys(values)) {
      if (former[name] === undefined) delete process.env[name];
      else process.env[name] = former[name];
    }
  }
}

test("Without a Redis, neither on the PATH nor named, it says both, and what to do, and leaves no keys", async () => {
  const make = jest.spyOn(TestKeys, "make");
  const started = withVariables({ PATH: "/nowhere", REDIS_URL: "" }, () => startRelay());
  await expect(started).rejects.toThrow(/^(?=.*redis-server)(?=.*PATH)(?=.*REDIS_URL).*Install/s);
  const keys = (await make.mock.results[0]?.value) as TestKeys;
  await expect(stat(keys.file)).rejects.toMatchObject({ code: "ENOENT" });
});

describe("With REDIS_URL", () => {
  const server = new TestRedis();
  let address: RedisProxy;
  let redis: Redis;
  beforeAll(async () => {
    await server.start();
    address = await new RedisProxy(server.url).start();
    redis = new Redis(server.path);
  });
  afterAll(async () => {
    redis.disconnect();
    await address.stop();
    await server.stop();
  });

  const keysIn = async (database: number) => {
    await redis.select(database);
    return await redis.keys("*");
  };

  test("relays take a database each, and leave them empty", async () => {
    const relays: Awaited<ReturnType<typeof startRelay>>[] = [];
    try {
      await withVariables({ REDIS_URL: address.url }, async () => {
        for (const _ of [0, 1]) relays.push(await startRelay());
      });
      for (const database of [0, 1]) expect(await keysIn(database)).toContain("agent-relay-testing:lease");
      const answers = await Promise.all(relays.map(async ({ url }) => (await fetch(`${url}/ready`)).status));
      expect(answers).toEqual([200, 200]);
    } finally {
      for (const relay of relays) await relay.stop();
    }
    for (const database of [0, 1]) expect(await keysIn(database)).toEqual([]);
  });

  test("it is left empty by a relay that fails to stop, too", async () => {
    const relay = await startRelay({ environment: { REDIS_URL: `${address.url}/8` } });
    const { stop } = LocalRelay.prototype;
    jest.spyOn(LocalRelay.prototype, "stop").mockImplementation(async function (this: LocalRelay) {
      await stop.call(this);
      throw new Error("stop failed");
    });
    await expect(relay.stop()).rejects.toThrow("stop failed");
    expect(await keysIn(8)).toEqual([]);
  });

  test("a database that holds anything of others is left as it is", async () => {
    await redis.select(3);
    await redis.set("relay:of-others", "kept");
    const relay = await startRelay({ environment: { REDIS_URL: `${address.url}/3` } });
    try {
      expect(await keysIn(4)).toContain("agent-relay-testing");
    } finally {
      await relay.stop();
    }
    expect(await keysIn(3)).toEqual(["relay:of-others"]);
  });

  test("what a relay left that was killed is deleted by the next, once its lease has ended", async () => {
    await redis.select(6);
    await redis.mset("agent-relay-testing", "", "agent-relay-testing:lease", "held", "relay:left", "", "foreign", "");
    const environment = { REDIS_URL: `${address.url}/6` };
    const beside = await startRelay({ environment });
    await beside.stop();
    expect(await keysIn(6)).toContain("relay:left");
    await redis.del("agent-relay-testing:lease");
    const after = await startRelay({ environment });
    try {
      const keys = await keysIn(6);
      expect(keys).not.toContain("relay:left");
      expect(keys).toContain("foreign");
    } finally {
      await after.stop();
    }
  });

  test("a relay that lost its lease, as a suspended one does, deletes nothing of the next one's", async () => {
    const relay = await startRelay({ environment: { REDIS_URL: `${address.url}/7` } });
    const next = { "agent-relay-testing:lease": "of the next one", "relay:of-the-next-one": "kept" };
    await redis.select(7);
    await redis.mset(next);
    await relay.stop();
    expect(await redis.mget(Object.keys(next))).toEqual(Object.values(next));
    expect(await redis.ttl("agent-relay-testing:lease")).toBe(-1);
    expect(await keysIn(7)).toContain("agent-relay-testing");
  });

  test("none is taken, and nothing changed, where every database is somebody else's", async () => {
    await redis.select(15);
    await redis.set("theirs", "kept");
    const started = startRelay({ environment: { REDIS_URL: `${address.url}/15` } });
    await expect(started).rejects.toThrow(/empty database/);
    expect(await keysIn(15)).toEqual(["theirs"]);
  });

  test("a Redis that cannot be used is named as the reason, with what to do", async () => {
    const started = startRelay({ environment: { REDIS_URL: "redis://127.0.0.1:9" } });
    await expect(started).rejects.toThrow(/REDIS_URL.*refused/);
  });
});
