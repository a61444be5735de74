import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:os";
import { dirname } from "node:path";
import { startRelay } from "./relay.ts";

/**
 * `with-relay [name …] -- command [argument …]`: runs a command beside a relay of its own, with key files of these agents, and
 * ends with its exit code.
 */

const USAGE = `with-relay [name ...] -- command [argument ...]

Starts a relay, runs the command, stops the relay, and ends with the command's exit code. The command finds in its environment

  RELAY_URL      address of the relay
  RELAY_KEYS     folder with a key file of each name: alice.json, bob.json unless others are given
  RELAY_API_KEY  for sends over HTTP as agent://alice
`;
const USAGE_EXIT_CODE = 2;
const DEFAULT_NAMES = ["alice", "bob"];

const given = process.argv.slice(2);
const separator = given.indexOf("--");
const [command, ...args] = separator < 0 ? [] : given.slice(separator + 1);
if (given[0] === "--help") process.stdout.write(USAGE);
else if (command === undefined) {
  process.stderr.write(USAGE);
  process.exitCode = USAGE_EXIT_CODE;
} else {
  const names = separator === 0 ? DEFAULT_NAMES : given.slice(0, separator);
  process.exitCode = await run(names, command, args).catch((error: Error) => {
    process.stderr.write(`with-relay: ${error.message}\n`);
    return 1;
  });
}

/** Resolves with the exit code of the command, as a shell tells it. */
async function run(names: readonly string[], command: string, args: readonly string[]): Promise<number> {
  await using relay = await startRelay();
  const agents = await Promise.all(names.map((name) => relay.agent(name)));
  const [keys] = agents.map(({ keyFile }) => dirname(keyFile));
  const env = { ...process.env, RELAY_URL: relay.url, RELAY_KEYS: keys, RELAY_API_KEY: relay.apiKey };
  const child = spawn(command, args, { env, stdio: "inherit" });
  // A terminal tells the command itself of Ctrl-C: the relay outlives it either way.
  process.on("SIGINT", () => {});
  for (const signal of ["SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  const [code, signal] = await once(child, "close");
  return code ?? 128 + constants.signals[signal as NodeJS.Signals];
}
