import { beforeEach, expect, test } from "@jest/globals";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import type { ServerLink, SubscribingLink } from "../src/redis/redis-calls.ts";
import { ServerChannel } from "../src/server-channel.ts";

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

test("It is given up when as many messages as may be missing were published, and nothing came in", async () => {
  await looks(REDIS_LIMITS.maxMissedLoopbacks);
  expect(reconnects).toBe(0);
  await looks(1);
  expect(reconnects).toBe(1);
});

test("It is kept while messages do not reach the server, or the server does not answer, however long", async () => {
  publish = () => Promise.reject(new Error("unavailable"));
  await looks(20);
  expect(reconnects).toBe(0);
});

test("It is kept when the connection for commands was replaced, and the first message has yet to be read", async () => {
  publish = () => Promise.reject(new Error("unavailable"));
  await looks(REDIS_LIMITS.maxMissedLoopbacks);
  publish = async () => 1;
  await looks(2);
  expect(reconnects).toBe(0);
});

test("It is kept while anything comes in, though messages of the pod to itself stand behind it", async () => {
  await looks(20, () => arrives("deliver con_1 1 agent://bob - {}"));
  expect(reconnects).toBe(0);
});

test("It is kept while they come back", async () => {
  publish = async (message) => arrives(message);
  await looks(20);
  expect(reconnects).toBe(0);
});
