import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { EmbeddedRedis } from "../local/embedded-redis.ts";
import { PID_FILE } from "./pid-file.ts";

/**
 * Process 1 of the image `all`, for tests: what `npm start` runs, with a Redis that outlives it. Signals are what befalls
 * them: HUP, the relay dies and another one starts; USR2, Redis dies; CONT, Redis is back, empty. Source:
 * docs/testing.md#containers.
 */

const RELAY = fileURLToPath(new URL("../local/main.ts", import.meta.url));
const LOOK_AGAIN_MS = 20;

const redis = new EmbeddedRedis();
let relay: ChildProcess | undefined;
let isEnding = false;
let redisTurn = redis.start();

process.on("SIGHUP", () => relay?.kill("SIGKILL"));
process.on("SIGUSR2", () => inTurn(() => redis.stop()));
process.on("SIGCONT", () => inTurn(() => redis.start()));
for (const signal of ["SIGTERM", "SIGINT"] as const) {
  process.on(signal, () => {
    isEnding = true;
    relay?.kill(signal);
  });
}

await redisTurn;
const environment = { ...process.env, ...(await toldAddress()), REDIS_URL: redis.url };
while (!isEnding) {
  relay = spawn(process.execPath, [RELAY], { env: environment, stdio: "inherit" });
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
  redisTurn = redisTurn.then(work);
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
