import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import { newOkpKey } from "../../deploy/keys/make.ts";
import { COMPILE_CACHE, type Ended, runProgram } from "../support/pod-process.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { TestRedis } from "../support/test-redis.ts";
import { ROOT } from "./terminal.ts";

/** Runs a command as the process that it is for the operator. */
function inProcess(
  program: string,
  args: readonly string[],
  env: Record<string, string>,
  stdin?: string,
): Promise<Ended> {
  return runProgram(process.execPath, [program, ...args], { cwd: ROOT, env: { ...COMPILE_CACHE, ...env } }, stdin);
}

test("npm run keys takes records from standard input, and loses none when two processes add at once", async () => {
  await using folder = await temporaryFolder();
  const file = join(folder.path, "keys.json");
  const add = (key_id: string) => {
    const record = { key_id, alg: "ed25519", public_key: newOkpKey("Ed25519").publicJwk.x, agents: ["agent://bob"] };
    return inProcess("deploy/keys/run.ts", ["add", "--wait", "0"], { RELAY_KEYS_FILE: file }, JSON.stringify(record));
  };
  const [one, other] = await Promise.all([add("bob-1"), add("bob-2")]);
  expect([one, other]).toMatchObject([
    { code: 0, stdout: "", stderr: expect.stringContaining("bob-1 may sign for agent://bob") },
    { code: 0, stdout: "", stderr: expect.stringContaining("bob-2 may sign for agent://bob") },
  ]);
  const { signing_keys } = JSON.parse(await readFile(file, "utf8"));
  expect(signing_keys.map(({ key_id }: { key_id: string }) => key_id).sort()).toEqual(["bob-1", "bob-2"]);
});

test("npm run admin ends with 2 and a hint when its command line is invalid", async () => {
  expect(await inProcess("deploy/admin/run.ts", ["counts"], {})).toEqual({
    ...{ code: 2, stdout: "" },
    stderr: expect.stringMatching(/^--key-file is required.*\nSee npm run admin -- --help\.\n$/),
  });
});

test("npm run window:reset opens a window, and ends", async () => {
  const redis = new TestRedis();
  await redis.start();
  const settings = { REDIS_URL: redis.url, RELAY_DEPLOY_ID: "v1" };
  const opened = expect.stringMatching(/^window opened: win_\w+/);
  try {
    expect(await inProcess("deploy/redis/window-reset.ts", [], settings)).toEqual({
      code: 0,
      stderr: "",
      stdout: opened,
    });
  } finally {
    await redis.stop();
  }
});
