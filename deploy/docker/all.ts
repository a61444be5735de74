import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { CONFIGURATION_EXIT_CODE } from "relay-runtime/settings.ts";
import { privateNodes } from "../local/private-nodes.ts";
import { MortalCluster, type MortalRedis, OneMortalRedis } from "./mortal-redis.ts";
import { PID_FILE, REDIS_TURNS_FILE } from "./told-in-files.ts";

/**
 * Process 1 of the image `all`, for tests: what `npm start` runs, with a Redis that outlives it, or, where RELAY_CLUSTER says
 * so, what `npm run start:cluster` does. Signals are what befalls them: HUP, the relay dies and another one starts; USR2, Redis
 * dies, or a primary; CONT, it is back, empty. Source: docs/testing.md#containers.
 */

const RELAY = fileURLToPath(new URL("../local/main.ts", import.meta.url));
const LOOK_AGAIN_MS = 20;

const isCluster = whether("RELAY_CLUSTER");
const redis: MortalRedis = isCluster ? new MortalCluster({ runner: privateNodes() }) : new OneMortalRedis();
let relay: ChildProcess | undefined;
let isEnding = false;
let redisTurns = 0;
let redisTurn = redis.start();

process.on("SIGHUP", () => relay?.kill("SIGKILL"));
process.on("SIGUSR2", () => inTurn(() => redis.fail()));
process.on("SIGCONT", () => inTurn(() => redis.restore()));
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => {
    isEnding = true;
    relay?.kill(signal);
  });
}

await redisTurn;
const environment = { ...process.env, ...(await toldAddress()), REDIS_URL: redis.url };
while (!isEnding) {
  relay = spawn(process.execPath, [RELAY, ...(isCluster ? ["--cluster"] : [])], { env: environment, stdio: "inherit" });
  // Waited for together: a relay may end before its id is written.
  const [[code]] = await Promise.all([once(relay, "exit"), writeFile(PID_FILE, String(relay.pid))]);
  // It ended by itself, as it does with invalid settings.
  if (code !== null) {
    process.exitCode = code;
    break;
  }
}
await redisTurn;
await redis.stop();

function inTurn(work: () => Promise<void>): void {
  redisTurn = redisTurn.then(work).then(() => {
    redisTurns += 1;
    return writeFile(REDIS_TURNS_FILE, String(redisTurns));
  });
}

/** A variable that says yes or no; no without it. */
function whether(variable: string): boolean {
  const text = process.env[variable] || "false";
  if (text === "true" || text === "false") return text === "true";
  process.stderr.write(`Invalid settings:\n  ${variable} must be true or false\n`);
  process.exit(CONFIGURATION_EXIT_CODE);
}

/** Whoever maps the port knows the address only when the container runs: RELAY_BASE_URL_FILE is where it is told then. */
async function toldAddress(): Promise<{ RELAY_BASE_URL?: string }> {
  const file = process.env.RELAY_BASE_URL_FILE;
  if (file === undefined) return {};
  while (!isEnding) {
    const [address, end] = (await readFile(file, "utf8").catch(() => "")).split("\n");
    if (address !== undefined && end !== undefined) return { RELAY_BASE_URL: address };
    await delay(LOOK_AGAIN_MS);
  }
  return {};
}
