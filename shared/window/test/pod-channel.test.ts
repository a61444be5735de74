import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { Redis } from "ioredis";
import { createLogger } from "relay-runtime/logging.ts";
import { TestRedis } from "../../../test/support/test-redis.ts";
import { ownTime } from "../../../test/support/time.ts";
import { until, watchLeaks } from "../../../test/support/until.ts";
import { waitForAnswers } from "../../../test/support/use.ts";
import { PodChannel } from "../src/channel/pod-channel.ts";
import { ServerChannel } from "../src/channel/server-channel.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import type { ServerLink, SubscribingLink } from "../src/redis/redis-calls.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { RedisLink } from "../src/redis/redis-link.ts";
import { IGNORED } from "./kit.ts";

const logger = createLogger({ service: "test", level: "silent" });
const redis = new TestRedis();
const noLeaks = watchLeaks();
waitForAnswers();

/** Agents of the two partitions. */
const [OF_FIRST, OF_SECOND] = [0, 1].map(agentOf) as [string, string];

let publisher: RedisLink;
let channel: PodChannel;

beforeAll(async () => {
  await redis.start();
  const { url } = redis;
  publisher = new RedisLink({ url, name: "publisher", logger });
  channel = new PodChannel({ calls: publisher, pod: "pod-a", partitions: 2 });
  await publisher.start();
  await channel.start();
});

afterEach(() => {
  jest.restoreAllMocks();
});

afterAll(async () => {
  await channel.stop();
  await publisher.stop();
  await redis.stop();
  await noLeaks();
});

test("What is published to a pod comes in line by line, whatever its partition", async () => {
  const heard: string[] = [];
  channel.listen({
    ...IGNORED,
    deliver: (connection, epoch, agent, sessionId, text) =>
      heard.push(["deliver", connection, epoch, agent, sessionId ?? "-", text].join(" ")),
    superseded: (connection, epoch, agent) => heard.push(`superseded ${connection} ${epoch} ${agent}`),
    probe: (connection, epoch, agent) => heard.push(`probe ${connection} ${epoch} ${agent}`),
    disconnect: (connection, epoch, agent) => heard.push(`disconnect ${connection} ${epoch} ${agent}`),
  });
  const lines = [
    'deliver con_1 7 agent://bob - {"a": 1}',
    "superseded con_1 8 agent://bob",
    "probe con_2 9 agent://eve",
    "disconnect con_2 9 agent://eve",
  ];
  const withUnknown = ["of-a-later-version con_2 9 agent://eve", ...lines];
  await publisher.command("SPUBLISH", partitionKeys.podChannel(1, "pod-a"), withUnknown.join("\n"));
  await until("all lines came in", () => heard.length >= lines.length);
  expect(heard).toEqual(lines);
});

test("A subscription that is gone while its connection lives is noticed by the messages that do not come back, and made anew", async () => {
  expect(channel.isReadyFor(OF_FIRST)).toBe(true);
  const [{ client }] = channel.links as [RedisLink];
  let wasClosed = false;
  client.once("close", () => {
    wasClosed = true;
  });
  const isReadyAgain = new Promise<void>((resolve) => channel.onHeard(() => resolve()));
  await client.sunsubscribe(partitionKeys.podChannel(0, "pod-a"));
  await isReadyAgain;
  expect(await publisher.command("SPUBLISH", partitionKeys.podChannel(0, "pod-a"), "")).toBe(1);
  // What the other partition is sent meanwhile would be lost with the connection.
  expect(wasClosed).toBe(false);
});

test("Who waits for what was published to an agent's pod asks in the agent's partition, in another while that is not ready", async () => {
  const run = publisher.run.bind(publisher);
  const sentTo: string[] = [];
  const [first, second] = [partitionKeys.pods(0), partitionKeys.pods(1)];
  let elsewhere: string | undefined;
  jest.spyOn(publisher, "run").mockImplementation(async (script, keys, args) => {
    sentTo.push(keys[0] as string);
    return keys[0] === elsewhere ? 0 : await run(script, keys, args);
  });
  const askedFor = async (agent: string) => {
    sentTo.length = 0;
    const caughtUp = channel.caughtUp(agent);
    const asked = [...sentTo];
    await caughtUp;
    return asked;
  };
  expect([await askedFor(OF_FIRST), await askedFor(OF_SECOND)]).toEqual([[first], [second]]);
  elsewhere = second;
  await until("the second is not heard", () => !channel.isReadyFor(OF_SECOND));
  expect(await askedFor(OF_SECOND)).toEqual([first]);
  elsewhere = undefined;
  await until("the second is heard", () => channel.isReadyFor(OF_SECOND));
});

test("A connection on which nothing comes back any more is given up, and made anew", async () => {
  const [{ client }] = channel.links as [RedisLink];
  const closed = once(client, "close");
  await client.sunsubscribe(partitionKeys.podChannel(0, "pod-a"), partitionKeys.podChannel(1, "pod-a"));
  expect(await client.ping()).toBe("PONG");
  await closed;
  expect(channel.ready).toBe(false);
  await until("messages come back", () => channel.isReadyFor(OF_FIRST) && channel.isReadyFor(OF_SECOND));
  await channel.caughtUp();
});

test.each([
  ["came to it", (link: SubscribingLink, name: string) => link.subscribe(name, () => {})],
  ["went", (link: SubscribingLink, name: string) => link.unsubscribe(name)],
])("What a server publishes that goes on, and was silent when a partition %s, comes in", async (_change, act) => {
  const heard: string[] = [];
  channel.listen({
    ...IGNORED,
    deliver: (...[, , , , text]) => heard.push(text),
  });
  const patient = new Redis({ path: redis.path, replyMapping: "legacy", disconnectTimeout: 10 });
  try {
    await patient.ping();
    await redis.pause();
    const line = `deliver c 1 ${OF_FIRST} - promised`;
    const published = patient.spublish(partitionKeys.podChannel(0, "pod-a"), line);
    const [link] = channel.links as [SubscribingLink];
    await expect(act(link, partitionKeys.podChannel(2, "pod-a"))).rejects.toMatchObject({ code: "unavailable" });
    // By then a connection that was given up is closed.
    await delay(2 * REDIS_LIMITS.disconnectTimeoutMs);
    await redis.resume();
    expect(await published).toBe(1);
    await until("it comes in", () => heard.length > 0);
    await until("the server answers", () => publisher.up && channel.isReadyFor(OF_FIRST));
    expect(heard).toEqual(["promised"]);
  } finally {
    await redis.resume();
    patient.disconnect();
  }
});

test("A channel that is stopped while it connects leaves no timer behind", async () => {
  const starting = new PodChannel({ calls: publisher, pod: "pod-b", partitions: 1 });
  const setInterval = jest.spyOn(globalThis, "setInterval");
  const started = starting.start();
  await starting.stop();
  await started;
  expect(setInterval).not.toHaveBeenCalled();
});

test("A channel that is stopped while it waits for its first message has started at once", async () => {
  const silent = new RedisLink({ url: redis.url, name: "silent", logger });
  const starting = new PodChannel({ calls: silent, pod: "pod-b", partitions: 1 });
  const started = starting.start();
  await until("it is subscribed", () => starting.links[0]?.up === true);
  await starting.stop();
  const late = ownTime(REDIS_LIMITS.connectTimeoutMs / 2);
  expect(await Promise.race([started, late])).not.toBe("late");
});

function agentOf(partition: number): string {
  for (let n = 0; ; n += 1) if (partitionOf(`agent://a${n}`, 2) === partition) return `agent://a${n}`;
}

describe("the connection of a channel to one server", () => {
  /** When a pod gives the connection of its channel up: what came in on it and was not read is lost then, though it was promised. */

  const CHANNEL = "relay:pod:a";
  let channel: ServerChannel;
  let reconnects: number;

  /** What the server does with a message of the pod to itself. */
  let publish: (message: string) => Promise<unknown>;

  /** Brings a message in. */
  let arrives: (message: string) => void;

  beforeEach(() => {
    reconnects = 0;
    publish = async () => 1;
    const link = {
      up: true,
      onConnection: () => {},
      onDown: () => {},
      subscribe: async (_: string, onMessage: (message: string) => void) => {
        arrives = onMessage;
      },
      reconnect: () => {
        reconnects += 1;
      },
    } as unknown as SubscribingLink;
    channel = new ServerChannel({
      server: { up: true, beside: () => link } as unknown as ServerLink,
      send: (_, message) => publish(message),
      receive: () => {},
      becameReady: () => {},
    });
    channel.join(0, CHANNEL);
  });

  async function looks(count: number, afterEach: () => void = () => {}): Promise<void> {
    for (let n = 0; n < count; n += 1) {
      await channel.look();
      afterEach();
    }
  }

  test("is given up when as many messages as may be missing were published, and nothing came in", async () => {
    await looks(REDIS_LIMITS.maxMissedLoopbacks);
    expect(reconnects).toBe(0);
    await looks(1);
    expect(reconnects).toBe(1);
  });

  test("is kept while messages do not reach the server, or the server does not answer, however long", async () => {
    publish = () => Promise.reject(new Error("unavailable"));
    await looks(20);
    expect(reconnects).toBe(0);
  });

  test("is kept when the connection for commands was replaced, and the first message has yet to be read", async () => {
    publish = () => Promise.reject(new Error("unavailable"));
    await looks(REDIS_LIMITS.maxMissedLoopbacks);
    publish = async () => 1;
    await looks(2);
    expect(reconnects).toBe(0);
  });

  test("is kept while anything comes in, though messages of the pod to itself stand behind it", async () => {
    await looks(20, () => arrives("deliver con_1 1 agent://bob - {}"));
    expect(reconnects).toBe(0);
  });

  test("is kept while they come back", async () => {
    publish = async (message) => arrives(message);
    await looks(20);
    expect(reconnects).toBe(0);
  });
});
