import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Redis } from "ioredis";
import { passwordVariable, REDIS_USERS } from "../support/deployed-users.ts";
import { GuardedRedis } from "../support/guarded-redis.ts";
import { type Ended, runProgram } from "../support/pod-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { watchLeaks } from "../support/until.ts";

const START = fileURLToPath(new URL("../../deploy/redis/start.sh", import.meta.url));
const PROGRAMS = ["sleep", "awk", "cut", "dirname", "mkdir", "rm", "sed", "sha256sum"];
const noLeaks = watchLeaks();
afterAll(() => noLeaks());

describe("Redis as it is deployed", () => {
  const redis = new GuardedRedis();
  let admin: Redis;
  const setting = async (name: string) => ((await admin.call("CONFIG", "GET", name)) as string[])[1];

  beforeAll(async () => {
    await redis.start();
    admin = new Redis(redis.adminAddress, { replyMapping: "legacy" });
  });
  afterAll(async () => {
    admin.disconnect();
    await redis.stop();
  });

  test("keeps nothing on disk, and refuses writes rather than forget keys", async () => {
    await admin.set("key", "value");
    expect([await setting("save"), await setting("appendonly")]).toEqual(["", "no"]);
    expect(await setting("maxmemory-policy")).toBe("noeviction");
    expect(await setting("maxmemory")).toBe(String(256 * 2 ** 20));
    expect(await readdir((await setting("dir")) as string)).toEqual(["users.acl"]);
  });

  test("keeps no log of commands, in which pieces of envelopes would stand", async () => {
    expect(await setting("slowlog-log-slower-than")).toBe("-1");
    expect(await setting("crash-log-enabled")).toBe("no");
    expect(await setting("acllog-max-len")).toBe("0");
  });

  test("lets no other user of the machine read the hashes of the passwords", async () => {
    const folder = (await setting("dir")) as string;
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    expect((await stat(join(folder, "users.acl"))).mode & 0o777).toBe(0o600);
  });

  test("shows no password in its arguments, its environment, its files or its log", async () => {
    const of = `/proc/${await redis.pid()}`;
    const file = await readFile(join((await setting("dir")) as string, "users.acl"), "utf8");
    const places = [
      await readFile(`${of}/cmdline`, "utf8"),
      await readFile(`${of}/environ`, "utf8"),
      file,
      redis.output,
    ];
    expect(file.match(/#[0-9a-f]{64}/g)).toHaveLength(redis.passwords.length);
    expect(places[0]).toContain("redis-server");
    for (const password of redis.passwords) for (const place of places) expect(place).not.toContain(password);
    expect(places.join()).not.toContain("REDIS_PASSWORD");
  });

  test.each(REDIS_USERS)("refuses %s with a wrong password, or with another user's", async (user) => {
    const other = REDIS_USERS.find((name) => name !== user) as (typeof REDIS_USERS)[number];
    for (const password of ["", "wrong", decodeURIComponent(new URL(redis.urlFor(other)).password)]) {
      await expect(admin.call("AUTH", user, password)).rejects.toThrow(/^WRONGPASS/);
    }
  });
});

describe("start.sh", () => {
  test("names every password that is missing or empty, and nothing else of its environment", async () => {
    const { code, stdout, stderr } = await start({
      REDIS_PASSWORD_GATEWAY: "given-gateway",
      REDIS_PASSWORD_WS_CONNECTOR: "",
    });
    expect([code, stdout]).toEqual([78, ""]);
    const missing = ["ws-connector", "ops-reporting", "window-reset"].map(passwordVariable);
    const named = stderr.trimEnd().split("\n").slice(1);
    expect(named.map((line) => line.trim().split(" ")[0])).toEqual(missing);
    expect(stderr).not.toContain("given-gateway");
  });

  test("gives no program it starts a password, Redis the memory that was asked for, and starts again over what it left", async () => {
    await using folder = await temporaryFolder();
    const record = await recordingPrograms(folder.path);
    const passwords = REDIS_USERS.map((user) => [passwordVariable(user), `secret-of-${user}`]);
    const environment = {
      PATH: join(folder.path, "bin"),
      TMPDIR: folder.path,
      REDIS_MAXMEMORY: "64mb",
      ...Object.fromEntries(passwords),
    };
    const ofCluster = ["cluster-create", "replica"].map((user) => [passwordVariable(user), `secret-of-${user}`]);
    const node = {
      ...environment,
      REDIS_CLUSTER_HOSTNAME: "redis-1",
      REDIS_CLUSTER_START_WAIT: "0",
      ...Object.fromEntries(ofCluster),
    };
    for (const each of [environment, environment, node]) {
      expect(await start(each)).toEqual({ code: 0, stdout: "", stderr: "" });
    }
    const calls = await readFile(record, "utf8");
    expect(calls).toMatch(/^redis-server \S+\/redis\.conf .*--maxmemory 64mb$/m);
    expect(calls).toMatch(/^redis-server .*--maxmemory 64mb .*--cluster-announce-hostname redis-1$/m);
    for (const program of PROGRAMS) expect(calls).toContain(`${program} `);
    expect(calls).not.toContain("secret-of");
  });
});

function start(env: Record<string, string>): Promise<Ended> {
  return runProgram("/bin/sh", [START], { env: { PATH: process.env.PATH, ...env } });
}

/** A PATH of programs that write down their arguments, and then do their work; Redis does none. */
async function recordingPrograms(folder: string): Promise<string> {
  const record = join(folder, "record");
  await mkdir(join(folder, "bin"));
  for (const program of [...PROGRAMS, "redis-server"]) {
    const work = program === "redis-server" ? "" : `exec /usr/bin/env PATH="${process.env.PATH}" ${program} "$@"`;
    const text = `#!/bin/sh\nprintf '%s\\n' "${program} $*" >>${record}\n${work}\n`;
    await writeFile(join(folder, "bin", program), text, { mode: 0o755 });
  }
  return record;
}
