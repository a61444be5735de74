import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { settingsReader } from "relay-runtime/settings.ts";
import { giveRedisPasswords } from "../../deploy/docker/redis-passwords.ts";
import { passwordVariable, REDIS_USERS } from "../support/deployed-users.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Only root can give files away. */
const me = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
const give = (folder: string, users: readonly string[] = REDIS_USERS, url = "redis://redis:6379") =>
  giveRedisPasswords(folder, me, new Map(users.map((user) => [user, me])), url);

async function passwordsIn(folder: string): Promise<Map<string, string>> {
  const text = await readFile(join(folder, "redis.env"), "utf8");
  return new Map(
    text
      .trimEnd()
      .split("\n")
      .map((line) => line.split("=") as [string, string]),
  );
}

async function urlIn(folder: string, user: string): Promise<URL> {
  const [, url = ""] = /^REDIS_URL=(.*)\n$/.exec(await readFile(join(folder, `${user}.env`), "utf8")) ?? [];
  return new URL(settingsReader("REDIS_URL")({ REDIS_URL: url }).redisUrl);
}

test("Each Redis user has a random password of its own, which Redis and that service alone are told", async () => {
  await using folder = await temporaryFolder();
  await give(folder.path);
  const passwords = await passwordsIn(folder.path);
  expect([...passwords.keys()]).toEqual(REDIS_USERS.map(passwordVariable));
  expect(new Set(passwords.values()).size).toBe(REDIS_USERS.length);
  for (const user of REDIS_USERS) {
    const { username, password } = await urlIn(folder.path, user);
    expect(password).toMatch(/^[0-9a-f]{64}$/);
    expect({ username, password }).toEqual({ username: user, password: passwords.get(passwordVariable(user)) });
  }
});

test("The files can be read by whom they are for, and written by nobody", async () => {
  await using folder = await temporaryFolder();
  await give(folder.path);
  const files = await readdir(folder.path);
  const modes = await Promise.all(files.map(async (file) => (await stat(join(folder.path, file))).mode & 0o777));
  expect(Object.fromEntries(files.map((file, index) => [file, modes[index]]))).toEqual({
    "redis.env": 0o400,
    ...Object.fromEntries(REDIS_USERS.map((user) => [`${user}.env`, 0o440])),
  });
});

test("Passwords stay what they are, however often they are given, and whoever has none gets one", async () => {
  await using folder = await temporaryFolder();
  await give(folder.path, ["gateway"]);
  const before = await passwordsIn(folder.path);
  await writeFile(join(folder.path, "gateway.env.new"), "of a run that was cut short");
  await give(folder.path);
  const after = await passwordsIn(folder.path);
  expect(after.get("REDIS_PASSWORD_GATEWAY")).toBe(before.get("REDIS_PASSWORD_GATEWAY"));
  expect(after.size).toBe(REDIS_USERS.length);
  await give(folder.path);
  expect(await passwordsIn(folder.path)).toEqual(after);
});

test("Users that are not named this time keep theirs, as those of a Redis Cluster do while there is none", async () => {
  await using folder = await temporaryFolder();
  await give(folder.path, [...REDIS_USERS, "cluster-create"]);
  const before = await passwordsIn(folder.path);
  await give(folder.path);
  expect(await passwordsIn(folder.path)).toEqual(before);
});

test("On a Redis Cluster each service is told all nodes, with its own user", async () => {
  await using folder = await temporaryFolder();
  await give(folder.path, ["gateway"], "redis-cluster://redis:6379,redis-2:6379");
  const [[, password]] = [...(await passwordsIn(folder.path))] as [[string, string]];
  const text = await readFile(join(folder.path, "gateway.env"), "utf8");
  expect(text).toBe(`REDIS_URL=redis-cluster://gateway:${password}@redis:6379,redis-2:6379\n`);
});
