import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { Redis } from "ioredis";
import { EmbeddedRedis, socketRoot } from "../../deploy/local/embedded-redis.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { TestRedis } from "../support/test-redis.ts";
import { until } from "../support/until.ts";

const MODULE = new URL("../../deploy/local/embedded-redis.ts", import.meta.url).href;

describe("the embedded Redis", () => {
  let redis: TestRedis;

  beforeEach(async () => {
    redis = new TestRedis();
    await redis.start();
  });

  afterEach(() => redis.stop());

  test("answers as soon as start resolves, on a unix socket and no TCP port", async () => {
    using client = connectedTo(redis);
    expect(redis.url).toMatch(/^unix:\/\/\/.*\/redis\.sock$/);
    expect(await client.redis.ping()).toBe("PONG");
    expect(await client.redis.config("GET", "port")).toEqual(["port", "0"]);
  });

  test("lets no other user in", async () => {
    expect((await stat(dirname(redis.path))).mode & 0o777).toBe(0o700);
    expect((await stat(redis.path)).mode & 0o777).toBe(0o700);
  });

  test("keeps nothing on disk, and refuses writes rather than forget keys", async () => {
    using client = connectedTo(redis);
    await client.redis.set("key", "value");
    expect(await client.redis.config("GET", "save")).toEqual(["save", ""]);
    expect(await client.redis.config("GET", "appendonly")).toEqual(["appendonly", "no"]);
    expect(await client.redis.config("GET", "maxmemory-policy")).toEqual(["maxmemory-policy", "noeviction"]);
    expect((await readdir(dirname(redis.path))).sort()).toEqual(["redis.pid", "redis.sock"]);
  });

  test("keeps no log of commands, in which pieces of envelopes would stand", async () => {
    using client = connectedTo(redis);
    expect(await client.redis.config("GET", "slowlog-log-slower-than")).toEqual(["slowlog-log-slower-than", "-1"]);
    expect(await client.redis.config("GET", "crash-log-enabled")).toEqual(["crash-log-enabled", "no"]);
  });

  test("leaves neither process nor folder after stop, which may be called again", async () => {
    const pid = await redis.pid();
    await Promise.all([redis.stop(), redis.stop()]);
    await redis.stop();
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(dirname(redis.path))).toBe(false);
  });

  test("stops even while Redis hangs", async () => {
    const pid = await redis.pid();
    await redis.pause();
    await redis.stop();
    expect(isAlive(pid)).toBe(false);
  });

  test("comes back empty at the same address after it died, and clients find it", async () => {
    using client = connectedTo(redis);
    await client.redis.set("key", "value");
    const url = redis.url;
    await redis.restart();
    expect(redis.url).toBe(url);
    expect(await client.redis.get("key")).toBeNull();
  });

  test("hangs while it is paused, and then answers what it was asked", async () => {
    using client = connectedTo(redis);
    await redis.pause();
    const answer = client.redis.ping();
    const pid = await redis.pid();
    await until("Redis is stopped", async () => (await processField(pid, STATE)) === "T");
    await redis.resume();
    expect(await answer).toBe("PONG");
  });
});

describe("the embedded Redis and its parent", () => {
  const children: ChildProcess[] = [];

  afterEach(() => {
    for (const child of children.splice(0)) child.kill("SIGKILL");
  });

  test("dies with its parent, its folder too, even when the parent is killed without a chance to clean up", async () => {
    const script = `
      import { EmbeddedRedis } from ${JSON.stringify(MODULE)};
      const redis = new EmbeddedRedis();
      await redis.start();
      console.log(redis.url);
      setInterval(() => {}, 60_000);`;
    const parent = spawn(process.execPath, ["--input-type=module", "--eval", script], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    children.push(parent);
    const [url] = await once(parent.stdout, "data");
    const folder = dirname(String(url).trim().slice("unix://".length));
    const pid = await pidIn(folder);
    expect(isAlive(pid)).toBe(true);

    parent.kill("SIGKILL");
    await until("Redis is gone", () => !isAlive(pid));
    await until("its folder is gone", () => !existsSync(folder));
  });

  test("is in a session of its own, so that Ctrl-C in the terminal does not reach it", async () => {
    const redis = new TestRedis();
    await redis.start();
    try {
      const own = await processField(process.pid, SESSION);
      expect(await processField(await redis.pid(), SESSION)).not.toBe(own);
    } finally {
      await redis.stop();
    }
  });

  test("shows the output of Redis when it does not start", async () => {
    await using folder = await temporaryFolder();
    const program = join(folder.path, "redis-server");
    await writeFile(
      program,
      '#!/bin/sh\necho "Redis server v=7.0.0"\n[ "$1" = --version ] || { echo "out of luck"; exit 1; }\n',
      {
        mode: 0o755,
      },
    );
    const path = process.env.PATH;
    process.env.PATH = `${folder.path}:${path}`;
    try {
      await expect(new EmbeddedRedis().start()).rejects.toThrow(/out of luck/);
    } finally {
      process.env.PATH = path;
    }
  });

  test("keeps the socket's path short enough for the kernel", () => {
    expect(socketRoot("/tmp/short")).toBe("/tmp/short");
    expect(socketRoot(`/tmp/${"long/".repeat(20)}`)).toBe("/tmp");
  });
});

/** A client that is disconnected at the end of its test. */
function connectedTo(redis: TestRedis) {
  const client = new Redis({ path: redis.path, retryStrategy: () => 10 });
  client.on("error", () => {});
  return { redis: client, [Symbol.dispose]: () => client.disconnect() };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function pidIn(folder: string): Promise<number> {
  return Number(await readFile(join(folder, "redis.pid"), "utf8"));
}

const STATE = 1;
const SESSION = 4;

/** A field of /proc/<pid>/stat, counted from the end of the program's name. */
async function processField(pid: number, index: number): Promise<string | undefined> {
  const status = await readFile(`/proc/${pid}/stat`, "utf8");
  return status.slice(status.lastIndexOf(")")).split(" ")[index];
}
