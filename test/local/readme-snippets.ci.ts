import { execFile } from "node:child_process";
import { mkdir, readdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { developmentKeys, developmentKeysFile } from "../../deploy/local/dev-keys.ts";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { codeBlock } from "../support/documents.ts";
import { freePort } from "../support/free-port.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { TestRedis } from "../support/test-redis.ts";
import { until } from "../support/until.ts";
import { ROOT, type Running, runLines } from "./terminal.ts";

/** The repository as its reader has it, with keys of its own; the relay of `npm start`, on a port of its own. */
let clone: Awaited<ReturnType<typeof temporaryFolder>>;
let readme: string;
let environment: NodeJS.ProcessEnv;
const running: Running[] = [];

beforeAll(async () => {
  readme = await readFile(join(ROOT, "README.md"), "utf8");
  clone = await temporaryFolder();
  for (const name of await readdir(ROOT)) {
    if (name !== ".local" && name !== ".git") await symlink(join(ROOT, name), join(clone.path, name));
  }
  const keys = join(clone.path, ".local");
  await mkdir(keys);
  await developmentKeys(keys, "issued");
  const port = String(await freePort());
  environment = { ...process.env, PORT: port, RELAY_URL: `http://127.0.0.1:${port}`, REDIS_URL: "" };
  environment.RELAY_KEYS_FILE = developmentKeysFile(keys);
  await run("npm start").says("Agent Relay is up.");
});

afterAll(async () => {
  for (const { interrupt } of running.reverse()) await interrupt();
  await clone[Symbol.asyncDispose]();
});

/** Commands of the README that go on. */
function run(commands: string): Running {
  const started = runLines(commands, environment, clone.path);
  running.push(started);
  return started;
}

/** What commands of the README print that come to an end. */
async function printedBy(commands: string): Promise<string> {
  const { stdout } = await promisify(execFile)("sh", ["-ec", commands], { cwd: clone.path, env: environment });
  return stdout;
}

test("The first message goes from relay send to relay listen", async () => {
  const listener = run(codeBlock(readme, "sh listen"));
  await listener.says(" is online");
  expect(await printedBy(codeBlock(readme, "sh send"))).toContain("handed to agent://bob");
  await listener.says("Hello, Bob.");
  expect(listener.printed()).toContain('"verified":"agent"');
  await listener.interrupt();
});

test("A new agent gets a key, passes the check and answers from a shell", async () => {
  const agent = run(codeBlock(readme, "sh shell-agent"));
  await agent.says(" is online");
  const bob = run(codeBlock(readme, "sh listen"));
  await bob.says(" is online");
  await printedBy(codeBlock(readme, "sh send").replaceAll("agent://bob", "agent://carol").replaceAll("alice", "bob"));
  await bob.says("Hello, agent://bob.");
  await bob.interrupt();
  await agent.interrupt();
});

test("An agent of another issuer, whose key is listed nowhere, passes the check", async () => {
  const printed = await printedBy(codeBlock(readme, "sh credentials"));
  expect(printed).toContain("agent://acme.dan");
  expect(printed).toContain("No problem found.");
});

test("The agent in Python replies, and the one in TypeScript hears that it has the message", async () => {
  const python = run(codeBlock(readme, "sh python-agent").replace("python3", pythonProgram()));
  await python.says(" is online");
  const program = codeBlock(readme, "ts typescript-agent");
  await writeFile(join(clone.path, "alice.ts"), program);
  expect(await printedBy("npx node alice.ts")).toBe("bob has it\n");
  await python.interrupt();
});

test("The curl line of the Docker section is answered 202", async () => {
  const commands = codeBlock(readme, "sh first-message");
  expect(JSON.parse(await printedBy(commands))).toMatchObject({ ok: true, accepted: true });
});

test("The key commands make, list and revoke keys", async () => {
  const [id] =
    /"key_id": "(carol-[^"]*)"/.exec(await readFile(environment.RELAY_KEYS_FILE as string, "utf8"))?.slice(1) ?? [];
  const commands = codeBlock(readme, "sh key-commands").replace("<id>", id as string);
  const printed = await printedBy(`exec 2>&1\n${commands}`);
  expect(printed).toContain("agent://erin");
  expect(printed).toContain(`Revoked ${id}.`);
});

test("Each service starts alone, and a window is reset at a deploy", async () => {
  const redis = new TestRedis();
  await redis.start();
  const commands = codeBlock(readme, "sh services-apart")
    .replaceAll("redis://…", redis.url)
    .replaceAll("=keys.json", `=${environment.RELAY_KEYS_FILE}`);
  const [gateway, connector, reports, reset] = commands.trim().split("\n") as [string, string, string, string];
  try {
    for (const command of [gateway, connector, reports]) {
      const port = await freePort();
      const service = run(command.replace(/PORT=\d+/, `PORT=${port}`));
      await until("it is ready", async () => await isReady(port));
      await service.interrupt();
    }
    expect(await printedBy(reset)).toContain("window opened: ");
  } finally {
    await redis.stop();
  }
});

async function isReady(port: number): Promise<boolean> {
  return await fetch(`http://127.0.0.1:${port}/ready`).then(
    ({ ok }) => ok,
    () => false,
  );
}
