import { parseArgs } from "node:util";
import { AGENT_ID_PATTERN } from "relay-protocol/wire/ids.ts";
import type { Environment } from "relay-runtime/settings.ts";
import type { Io } from "../local/io.ts";
import {
  type Agents,
  agentsText,
  type CountsAnswer,
  countsText,
  mergedCounts,
  mergedNoise,
  type NoisiestAnswer,
  noisiestText,
  Pods,
} from "./answers.ts";

/** Runs one command line of `npm run admin`. Never rejects. @returns the exit code. */
export async function run(args: string[], { env, stdout, stderr }: Omit<Io, "stdin">): Promise<number> {
  try {
    const { text, unanswered } = await runAdminCommand(args, env);
    stdout.write(text);
    for (const sentence of unanswered) stderr.write(`${sentence}\n`);
    return unanswered.length > 0 ? 1 : 0;
  } catch (error) {
    const isUsageError = error instanceof UsageError;
    const hint = isUsageError ? "\nSee npm run admin -- --help." : "";
    stderr.write(`${(error as Error).message}${hint}\n`);
    return isUsageError ? 2 : 1;
  }
}

/** The command line is invalid. */
export class UsageError extends Error {}

export type Options = ReturnType<typeof parseCommandLine>["values"];

const DEFAULT_PORT = "9092";
const DEFAULT_LIMIT = 10;
export const MAX_LIMIT = 100;

/** @throws {UsageError} */
export function parseCommandLine(args: string[]) {
  try {
    return parseArgs({
      args,
      allowPositionals: true,
      options: {
        help: { type: "boolean", short: "h" },
        issuer: { type: "string" },
        json: { type: "boolean" },
        key: { type: "string" },
        "key-file": { type: "string" },
        limit: { type: "string" },
        url: { type: "string", multiple: true },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** `--url`: the listeners to ask, without slashes at their ends. @throws {UsageError} */
function urlsOf({ url = [] }: Options, { ADMIN_PORT: port }: Environment): string[] {
  const urls = url.flatMap((text) => text.split(",")).map((text) => text.trim().replace(/\/+$/, ""));
  if (!urls.every(isAddress)) {
    throw new UsageError(
      "--url is one address or more, each with http:// or https://, without user, query and fragment.",
    );
  }
  return urls.length > 0 ? urls : [`http://127.0.0.1:${port || DEFAULT_PORT}`];
}

/** Errors print the address, so it may contain no password. One with a slash looks like a port and a path. */
function isAddress(text: string): boolean {
  const { protocol = "", search, hash } = URL.parse(text) ?? {};
  return /^https?:$/.test(protocol) && !text.includes("@") && !search && !hash;
}

/** `--key-file`. @throws {UsageError} */
export function keyFileOf(options: Options, { RELAY_ADMIN_KEY_FILE: file }: Environment): string {
  const path = options["key-file"] || file;
  if (!path)
    throw new UsageError("--key-file is required, or RELAY_ADMIN_KEY_FILE: the file with the key of the pods.");
  return path;
}

/** `--key` or `--issuer`, as a query. @throws {UsageError} */
function holderQueryOf({ key, issuer }: Options): string {
  if ((key === undefined) === (issuer === undefined)) throw new UsageError("agents takes --key <id> or --issuer <id>.");
  return new URLSearchParams(key === undefined ? { issuer: issuer ?? "" } : { key }).toString();
}

/** The agent after `disconnect`. @throws {UsageError} */
export function agentOf(names: readonly string[]): string {
  const [name = "", ...more] = names;
  const agent = name.includes("://") ? name : `agent://${name}`;
  if (!AGENT_ID_PATTERN.test(agent) || more.length > 0) {
    throw new UsageError("disconnect takes one agent id, such as agent://bob.");
  }
  return agent;
}

/** @throws {UsageError} */
export function limitOf({ limit = String(DEFAULT_LIMIT) }: Options): number {
  if (!/^[1-9]\d{0,2}$/.test(limit) || Number(limit) > MAX_LIMIT) {
    throw new UsageError(`--limit is a number from 1 to ${MAX_LIMIT}.`);
  }
  return Number(limit);
}

export const USAGE = `Usage: npm run admin -- <command> [options]

Asks the admin listeners (ADMIN_PORT) of ws-connector pods, as their operator.

Commands:
  counts             the window, its agents by presence, and what each pod has
  agents --key ID    the agents of a signing key: at most 1000, the newest first
  agents --issuer ID the agents with credentials of an issuer
  disconnect AGENT   close the connection of an agent, with all agents on it;
                     connectors come back at once. Revoke a key to keep one out
  noisiest           who sent most in the last two minutes, and who was refused
                     most since the pods started

Options:
  --url URL,...      admin listeners of pods, whose answers are added; default
                     ADMIN_PORT on this machine, or http://127.0.0.1:9092
  --key-file PATH    a file with their key; default RELAY_ADMIN_KEY_FILE
  --limit N          noisiest: how many of each, 1 to 100; default 10
  --json             print JSON in place of tables

Each pod writes each command into its audit log.
Exit codes: 0 done, 1 refused or a pod gave no answer, 2 invalid command line.
Example: npm run admin -- disconnect agent://bob
Reference: docs/operations.md#admin
`;

/** What a command prints, and of each pod that gave no answer a sentence that says why. */
export interface Output {
  readonly text: string;
  readonly unanswered: readonly string[];
}

/** Runs one command of `npm run admin`. @throws {UsageError | Error} that says what to do. */
async function runAdminCommand(args: string[], environment: Environment): Promise<Output> {
  const { values, positionals } = parseCommandLine(args);
  const [command, ...rest] = positionals;
  if (values.help === true || command === undefined) return { text: USAGE, unanswered: [] };

  const ask = commandOf(command, rest, values);
  const pods = await Pods.at(urlsOf(values, environment), keyFileOf(values, environment));
  const { answer, text, unanswered } = await ask(pods);
  return { text: values.json === true ? `${JSON.stringify(answer, null, 2)}\n` : text, unanswered };
}

/** An answer, and how it is shown. */
type Ask = (pods: Pods) => Promise<Output & { readonly answer: object }>;

const COMMANDS: readonly string[] = ["counts", "agents", "disconnect", "noisiest"];

/** @throws {UsageError} */
function commandOf(command: string, rest: readonly string[], options: Options): Ask {
  if (!COMMANDS.includes(command)) {
    throw new UsageError(`There is no command ${command}: there are ${COMMANDS.join(", ")}.`);
  }
  if (command === "disconnect") return disconnecting(agentOf(rest));
  if (rest.length > 0) throw new UsageError(`${command} takes no further arguments.`);
  if (command === "counts") return counting;
  if (command === "agents") return listing(holderQueryOf(options));
  return ranking(limitOf(options));
}

const counting: Ask = async (pods) => {
  const { answers, unanswered } = await pods.askAll<CountsAnswer>({ path: "/admin/counts", member: "pod" });
  const answer = mergedCounts(answers);
  return { answer, text: countsText(answer), unanswered };
};

function listing(query: string): Ask {
  return async (pods) => {
    const { answers, unanswered } = await pods.askFirst<Agents>({ path: `/admin/agents?${query}`, member: "agents" });
    const [answer] = answers as [Agents];
    return { answer, text: agentsText(answer), unanswered };
  };
}

function disconnecting(agent: string): Ask {
  return async (pods) => {
    const { answers, unanswered } = await pods.askFirst<object>({
      path: "/admin/disconnect",
      member: "disconnected",
      body: { agent },
    });
    const [answer] = answers as [object];
    return {
      answer,
      text: `The connection of ${agent} is being closed. Its connector may come back at once.\n`,
      unanswered,
    };
  };
}

/** Who is noisy on all pods together may not be among the first of each. */
function ranking(limit: number): Ask {
  return async (pods) => {
    const { answers, unanswered } = await pods.askAll<NoisiestAnswer>({
      path: `/admin/noisiest?limit=${MAX_LIMIT}`,
      member: "by_bytes",
    });
    const answer = mergedNoise(answers, limit);
    return { answer, text: noisiestText(answer), unanswered };
  };
}

if (import.meta.main) process.exitCode = await run(process.argv.slice(2), process);
