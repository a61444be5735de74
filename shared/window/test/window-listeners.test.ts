import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createLogger } from "runtime/logging.ts";
import { openAnotherWindow } from "../../../test/support/another-window.ts";
import { TestRedis } from "../../../test/support/test-redis.ts";
import { ProcessWindow } from "../src/process-window.ts";
import { RedisLink } from "../src/redis/redis-link.ts";

const logger = createLogger({ service: "test", level: "silent" });
const redis = new TestRedis();
let link: RedisLink;
let window: ProcessWindow;
let heard = () => Promise.resolve();

beforeAll(async () => {
  await redis.start();
  link = new RedisLink({ url: redis.url, name: "test", logger });
  window = new ProcessWindow({ link, partitions: 1, deployId: "local", logger });
  window.onChange(() => heard());
  await link.start();
});
afterAll(async () => {
  await link.stop();
  await redis.stop();
});

test("nothing is written to a new window while a listener has not done its work there", async () => {
  await openAnotherWindow(link.client);
  const { promise: told, resolve: tell } = Promise.withResolvers<void>();
  const { promise: done, resolve: finish } = Promise.withResolvers<void>();
  heard = () => {
    tell();
    return done;
  };
  const adopting = window.adoptOpenWindow();
  await told;

  const written: string[] = [];
  const write = window.inWindow(async ({ id }) => written.push(id));
  await link.command("PING");
  expect(written).toEqual([]);
  finish();
  await write;
  expect(written).toEqual([(await adopting).id]);
});

test("a window whose listener failed is not adopted, and is told of again", async () => {
  const { id } = window.current;
  await openAnotherWindow(link.client);
  heard = () => Promise.reject(new Error("no"));
  await expect(window.adoptOpenWindow()).rejects.toThrow("no");
  expect(window.current.id).toBe(id);

  const times: number[] = [];
  heard = async () => void times.push(1);
  await window.adoptOpenWindow();
  expect(window.current.id).not.toBe(id);
  expect(times).toEqual([1]);
});
