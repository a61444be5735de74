import { beforeEach, describe, expect, test } from "@jest/globals";
import { createLogger } from "relay-runtime/logging.ts";
import { ownTime } from "../../../test/support/time.ts";
import { until } from "../../../test/support/until.ts";
import { UsableListeners } from "../src/redis/link-state.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { RedisLink } from "../src/redis/redis-link.ts";
import { ALICE, BOB, messageOf } from "./envelopes.ts";
import { LOGGER, type Pod, redisBench } from "./kit.ts";

const bench = redisBench();

const unavailable = { code: "unavailable", retryAfterMs: 1000 };
let pod: Pod;
const send = () => pod.accept(messageOf(ALICE, BOB));

/** What comes of one message within a time. */
const outcomeWithin = async (ms: number) => await Promise.race([send().then(({ outcome }) => outcome), ownTime(ms)]);

const back = () => until("messages are accepted again", async () => (await send()).outcome === "accepted");

beforeEach(async () => {
  pod = await bench.pod();
});

describe("while Redis hangs", () => {
  test("everything is refused as unavailable within a second, and is back after it without restart", async () => {
    await bench.redis.pause();
    const calls = Promise.allSettled([pod.link.command("PING"), pod.link.run("read_window", ["a", "b"])]);
    const outcomes = await Promise.all([outcomeWithin(1000), outcomeWithin(1000)]);
    outcomes.push(await outcomeWithin(1000));
    await bench.redis.resume();
    expect(outcomes).toEqual(Array(3).fill("unavailable"));
    expect(await calls).toMatchObject(Array(2).fill({ status: "rejected", reason: unavailable }));
    await back();
  });
});

describe("when Redis is killed", () => {
  test("everything is refused at once, and is back when Redis is, empty", async () => {
    await bench.redis.kill();
    await until("the link is down", () => !pod.link.up);
    expect(await outcomeWithin(REDIS_LIMITS.commandTimeoutMs)).toBe("unavailable");
    await expect(pod.link.command("PING")).rejects.toMatchObject(unavailable);
    await bench.redis.start();
    await back();
  });

  test("what was on its way is answered, and never sent again", async () => {
    await pod.register(BOB);
    await bench.redis.pause();
    const pending = Promise.all(Array.from({ length: 10 }, () => pod.accept(messageOf(ALICE, BOB))));
    await bench.redis.kill();
    expect((await pending).map(({ outcome }) => outcome)).toEqual(Array(10).fill("unavailable"));
    await bench.redis.start();
    await back();
    expect((await bench.counters()).published_envelopes).toBe(1);
  });
});

test("what was on its way when a connection was given up is not sent again on the next one", async () => {
  await bench.redis.pause();
  const raised = Promise.allSettled([pod.link.command("INCR", "times")]);
  pod.link.reconnect(new Error("given up by the test"));
  expect(await raised).toMatchObject([{ status: "rejected", reason: unavailable }]);
  await bench.redis.resume();
  await until("the link is up", () => pod.link.up);
  expect(Number(await bench.client.get("times"))).toBeLessThanOrEqual(1);
});

test("scripts that Redis forgot are sent again, and the order of deliveries is kept", async () => {
  const ear = await bench.ear("pod-a");
  await pod.register(BOB);
  const messages = Array.from({ length: 600 }, () => messageOf(ALICE, BOB));
  const sent = pod.acceptAll(...messages);
  const flushed = bench.client.script("FLUSH");
  const later = messageOf(ALICE, BOB);
  const outcomes = [...(await sent), await pod.accept(later)];
  await flushed;
  expect(new Set(outcomes.map(({ outcome }) => outcome))).toEqual(new Set(["accepted"]));
  const ids = (await ear.lines()).map((line) => /"id":"([^"]+)"/.exec(line)?.[1]);
  expect(ids).toEqual([...messages, later].map(({ id }) => id));
});

describe("a link", () => {
  test("starts without Redis, says so, and is up when Redis comes", async () => {
    await bench.redis.stop();
    const link = new RedisLink({ url: bench.redis.url, name: "early", logger: LOGGER });
    bench.later(() => link.stop());
    await link.start();
    expect(link.up).toBe(false);
    await expect(link.run("read_window", ["a", "b"])).rejects.toMatchObject(unavailable);
    await bench.redis.start();
    await until("the link is up", () => link.up);
  });

  test("connects again when what must be done on a new connection fails, until it is done", async () => {
    const link = new RedisLink({ url: bench.redis.url, name: "unlucky", logger: LOGGER });
    bench.later(() => link.stop());
    let attempts = 0;
    link.onUsable(async () => {
      attempts += 1;
      if (attempts < 3) throw new Error("not yet");
    });
    await link.start();
    expect(attempts).toBe(3);
    expect(link.up).toBe(true);
  });

  test("hears the channels that are subscribed to while its connection is set up", async () => {
    const link = new RedisLink({ url: bench.redis.url, name: "hearing", logger: LOGGER });
    bench.later(() => link.stop());
    const heard: string[] = [];
    const hear = (channel: string) => link.subscribe(channel, (message) => heard.push(`${channel} ${message}`));
    await hear("first");
    link.onUsable(() => hear("second"));
    await link.start();
    for (const channel of ["first", "second"]) expect(await bench.client.spublish(channel, "text")).toBe(1);
    await until("both came in", () => heard.length === 2);
    expect(heard).toEqual(["first text", "second text"]);
  });

  test("may be stopped at any time, and again, and stays down", async () => {
    const link = await bench.link();
    await Promise.all([link.stop(), link.stop()]);
    expect(link.up).toBe(false);
    await expect(link.command("PING")).rejects.toMatchObject(unavailable);
    const never = new RedisLink({ url: bench.redis.url, name: "never", logger: LOGGER });
    await never.stop();
    expect(never.up).toBe(false);
  });

  test("that is stopped while it starts has started at once", async () => {
    await bench.redis.pause();
    const link = new RedisLink({ url: bench.redis.url, name: "hurried", logger: LOGGER });
    const started = link.start();
    await link.stop();
    const outcome = await Promise.race([started, ownTime(REDIS_LIMITS.connectTimeoutMs / 2)]);
    await bench.redis.resume();
    expect(outcome).not.toBe("late");
    expect(link.up).toBe(false);
  });

  test("logs what Redis refused without what was sent to it", async () => {
    const log: string[] = [];
    const logger = createLogger({ service: "test", level: "debug" }, { write: (line) => log.push(line) });
    const link = new RedisLink({ url: bench.redis.url, name: "telling", logger });
    bench.later(() => link.stop());
    await link.start();
    await link.command("SET", "text", "1");
    await expect(link.command("HGET", "text", "a-secret")).rejects.toMatchObject(unavailable);
    await expect(link.run("add_feedback", ["text", "text"], ["a-secret", "a-secret"])).rejects.toMatchObject(
      unavailable,
    );
    expect(log.join("")).toContain("WRONGTYPE");
    expect(log.join("")).not.toContain("a-secret");
  });
});

test("What fails keeps nobody else from being told, be it at once or later, and all are told again until it holds", async () => {
  const done: number[] = [];
  const told = { before: 0, atOnce: 0, later: 0, after: 0 };
  const listeners = new UsableListeners(() => done.push(told.after));
  listeners.add(async () => {
    told.before += 1;
  });
  listeners.add(() => {
    told.atOnce += 1;
    if (told.atOnce === 1) throw new Error("at once");
    return Promise.resolve();
  });
  listeners.add(async () => {
    told.later += 1;
    if (told.later < 3) throw new Error("later");
  });
  listeners.add(async () => {
    told.after += 1;
  });
  await listeners.run();
  expect(told).toEqual({ before: 1, atOnce: 1, later: 1, after: 1 });
  await until("all of it holds", () => done.length > 0);
  listeners.stop();
  expect(done).toEqual([3]);
});

test("What comes back while they run has them run once more, after that", async () => {
  const { promise: mayEnd, resolve: letEnd } = Promise.withResolvers<void>();
  const order: string[] = [];
  const listeners = new UsableListeners(() => order.push("done"));
  listeners.add(async () => {
    order.push("begins");
    await mayEnd;
    order.push("ends");
  });
  const first = listeners.run();
  await listeners.run();
  await listeners.run();
  letEnd();
  await first;
  expect(order).toEqual(["begins", "ends", "begins", "ends", "done"]);
});
