import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "@jest/globals";
import { freePort } from "../support/free-port.ts";
import { until } from "../support/until.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A command of the README in a process group of its own, as a terminal runs it. */
function run(command: string, env: Record<string, string>) {
  const child = spawn("sh", ["-c", `exec ${command}`], { cwd: ROOT, env: { ...process.env, ...env }, detached: true });
  let printed = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (printed += String(chunk)));
  const ended = once(child, "exit");
  return {
    group: child.pid as number,
    printed: () => printed,
    /** Ctrl-C: the terminal signals the whole group. */
    interrupt: async () => {
      process.kill(-(child.pid as number), "SIGINT");
      return (await ended)[0] as number | null;
    },
  };
}

/** Process id of the Redis guardian that a process of this group started. */
async function guardianOf(group: number): Promise<number | undefined> {
  const { stdout } = await promisify(execFile)("ps", ["-eo", "pid=,ppid=,pgid=,args="]);
  const processes = stdout.split("\n").map((line) => line.trim().split(/\s+/));
  const members = new Set(processes.filter(([, , pgid]) => pgid === String(group)).map(([pid]) => pid));
  const guardian = processes.find(([, parent, , ...args]) => members.has(parent) && args.includes("redis-guardian"));
  return guardian === undefined ? undefined : Number(guardian[0]);
}

function lives(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** A line of what was printed, as it would be pasted. */
function lineOf(printed: string, program: string): string {
  return new RegExp(`^ {2}(${program} .*)$`, "m").exec(printed)?.[1] as string;
}

test("npm start serves, and prints the lines with which a message is exchanged", async () => {
  const port = await freePort();
  const env = { PORT: String(port), HOST: "127.0.0.1", REDIS_URL: "", RELAY_KEYS_FILE: "" };
  const relay = run("npm start", env);
  await until("npm start says that the relay is up", () => relay.printed().includes("Agent Relay is up."), 15_000);
  const listener = run(lineOf(relay.printed(), "npx --no relay listen"), {});
  await until("bob is online", () => listener.printed().includes("agent://bob is online"), 10_000);

  const curl = lineOf(relay.printed(), "curl");
  const answer = await promisify(execFile)("sh", ["-c", `${curl} -w '%{http_code}'`]);
  expect(answer.stdout).toMatch(/"can_deliver_realtime":true.*202$/);
  await until("the message is printed", () => listener.printed().includes('{"message":"Hello, Bob."}'));

  const send = await promisify(execFile)("sh", ["-c", lineOf(relay.printed(), "npx --no relay send")], { cwd: ROOT });
  expect(send.stdout).toContain("handed to agent://bob");
  await until("the other message is printed", () => listener.printed().split('{"message":"Hello, Bob."}').length === 3);

  await listener.interrupt();
  const example = run("npm run listen", { RELAY_URL: `http://127.0.0.1:${port}` });
  await until("the example is bob", () => example.printed().includes("agent://bob is online"), 10_000);
  await example.interrupt();
  const redis = (await guardianOf(relay.group)) as number;
  expect(lives(redis)).toBe(true);
  expect(await relay.interrupt()).toBe(0);
  await until("its Redis is gone", () => !lives(redis));
});
