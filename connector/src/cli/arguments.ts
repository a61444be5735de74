import { isIPv4 } from "node:net";
import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { AGENT_ID, AGENT_SCHEME, agentIdProblem } from "../agent-id.ts";
import { parseJson } from "../parse-json.ts";
import type { JsonObject } from "../types.ts";
import { type Failure, usageError } from "./failure.ts";
import { readInput } from "./files.ts";
import type { Input, Options } from "./io.ts";

/** Options of every command. */
export const COMMON = {
  json: { type: "boolean", help: "print results and reports as JSON lines" },
} as const satisfies Options;
const HELP = { help: { type: "boolean", short: "h" } } as const;

/** Options of commands that act as an agent. */
export const AGENT_OPTIONS = {
  key: { type: "string", value: "FILE", help: "the agent's key file; default RELAY_KEY_FILE" },
  url: { type: "string", value: "URL", help: "the relay; default RELAY_URL or http://127.0.0.1:8080" },
} as const satisfies Options;

/** Of commands that open a connection. */
export const TAKE_OVER = {
  "take-over": { type: "boolean", help: "end the agent's connection elsewhere and go on" },
} as const satisfies Options;

/** Of commands that send a message. */
export const MESSAGE_OPTIONS = {
  type: { type: "string", value: "TYPE", help: "message.<word> in place of message.send" },
  "wait-online": { type: "string", value: "SECONDS", help: "how long to wait for the target to come online" },
} as const satisfies Options;

/** Of commands that receive: whom to believe. */
export const TRUST_OPTIONS = {
  trust: {
    type: "string",
    value: "FILE",
    multiple: true,
    help: "issuers, keys or gateways to believe; may be repeated",
  },
  "require-verified": { type: "boolean", help: "drop messages that nobody you trust vouches for" },
  "max-age": { type: "string", value: "SECONDS", help: "drop what was signed earlier; default 600, 0 takes all" },
} as const satisfies Options;

const SECRET_OPTION = /^--?(?:private[-_]?key|secret|seed|api[-_]?key|x-api-key|token|password)(?:=|$)/i;
/** A 32-byte key in base64url, or an API key of a relay. */
const SECRET_VALUE = /^(?:--key=)?(?:[A-Za-z0-9_-]{43}|rk_[0-9A-Za-z]{36})$/;

/**
 * Parses the words after a command's name.
 * @throws {Failure} that names options, never their values.
 */
export function readArguments<const T extends ParseArgsOptionsConfig>(args: string[], options: T) {
  refuseSecrets(args);
  try {
    return parseArgs({ args, options: { ...COMMON, ...HELP, ...options }, allowPositionals: true });
  } catch (error) {
    const [sentence] = (error as Error).message.split(/\.\s|\n/);
    const [, unknown] = /^Unknown option '--?([^']+)'/.exec(sentence ?? "") ?? [];
    const meant = unknown && nearest(unknown, Object.keys({ ...COMMON, ...HELP, ...options }));
    throw usageError(`${sentence?.replace(/\.$/, "")}.`, meant && `Did you mean --${meant}? See --help.`);
  }
}

/** A word that no secret is as short as, or the id of an agent. */
const SHOWN_WORD = /^(?:agent:\/\/)?[\w./~-]{1,31}$/;

/** Of a word beyond those that a command takes. @param takes what it takes, such as "options only". */
export function unexpectedWord(command: string, takes: string, word: string): Failure {
  const named = SHOWN_WORD.test(word) ? ` It does not take the word ${word}.` : "";
  const hint =
    AGENT_ID.test(word) && takes === "options only" ? `Did you mean --agent ${word}? See --help.` : undefined;
  return usageError(`${command} takes ${takes}.${named}`, hint);
}

/** Arguments appear in the process list, in shell histories and in logs. */
function refuseSecrets(args: string[]): void {
  if (!args.some((arg) => SECRET_OPTION.test(arg) || SECRET_VALUE.test(arg))) return;
  throw usageError(
    "A secret is not allowed on the command line. Every user of this machine can read it there, and the shell records it.",
    "Treat this one as leaked. Put a new one into a key file (relay keygen), or into RELAY_PRIVATE_KEY, RELAY_SECRET or RELAY_API_KEY.",
  );
}

/** @throws {Failure} for an option whose value is not a whole number within the bounds. */
export function wholeNumber(name: string, text: string | undefined, min: number, max: number): number | undefined {
  if (text === undefined) return undefined;
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw usageError(`--${name} must be a whole number from ${min} to ${max}.`);
}

const DAY_S = 86_400;

/** Milliseconds of `--max-age`. @throws {Failure} as wholeNumber does. */
export function deliveryAgeMs(text: string | undefined): number | undefined {
  const seconds = wholeNumber("max-age", text, 0, DAY_S);
  return seconds === undefined ? undefined : seconds * 1000;
}

/** What to say of an option --agent that is not there, or is no agent's id. */
export function agentMissing(agent: string | undefined): string {
  const problem = agent ? agentIdProblem(agent) : undefined;
  return problem === undefined ? "Name the agent: --agent agent://<name>." : `--agent ${problem}.`;
}

/** Of that many letters added, left out or replaced, a word is still taken for a slip. */
const MAX_SLIPS = 2;

/** The one of the words that was probably meant: always one of them, never what was typed. Undefined when none is near. */
export function nearest(typed: string, words: readonly string[]): string | undefined {
  const near = words.map((word) => ({ word, slips: slipsBetween(typed, word) }));
  const [best] = near.sort((one, other) => one.slips - other.slips);
  const isNear = best !== undefined && best.slips <= MAX_SLIPS && best.slips < best.word.length / 2;
  return isNear ? best.word : undefined;
}

/** Damerau's distance, where neighbours that changed places are one slip, of words of a length that a command line may have. */
function slipsBetween(one: string, other: string): number {
  if (Math.abs(one.length - other.length) > MAX_SLIPS) return Number.POSITIVE_INFINITY;
  const lines = [Array.from({ length: other.length + 1 }, (_, column) => column)];
  for (let row = 1; row <= one.length; row += 1) {
    const [before = [], above = []] = [lines[row - 2], lines[row - 1]];
    const line = [row];
    for (let column = 1; column <= other.length; column += 1) {
      const replaced = at(above, column - 1) + (one[row - 1] === other[column - 1] ? 0 : 1);
      const hasSwapped = one[row - 1] === other[column - 2] && one[row - 2] === other[column - 1];
      const swapped = hasSwapped ? at(before, column - 2) + 1 : Number.POSITIVE_INFINITY;
      line.push(Math.min(replaced, swapped, at(above, column) + 1, at(line, column - 1) + 1));
    }
    lines.push(line);
  }
  return at(lines[one.length] as number[], other.length);
}

function at(line: readonly number[], column: number): number {
  return line[column] ?? Number.POSITIVE_INFINITY;
}

/** The agent that a word of the command line names: an id, or a name alone (`bob` is agent://bob). @throws {Failure} `usage`. */
export function targetOf(word: string): string {
  if (AGENT_ID.test(AGENT_SCHEME + word)) return AGENT_SCHEME + word;
  const problem = agentIdProblem(word);
  if (problem === undefined) return word;
  throw usageError(`The target ${problem}.`, "Name the target as the first word, for example agent://bob.");
}

/** The option `--wait-online`. */

/** The most seconds of a wait. */
export const MAX_WAIT_S = 3600;

/** Its milliseconds; undefined where it is not given. @throws {Failure} as wholeNumber does. */
export function waitOnlineMs(text: string | undefined): number | undefined {
  const seconds = wholeNumber("wait-online", text, 1, MAX_WAIT_S);
  return seconds === undefined ? undefined : seconds * 1000;
}

/** What a command waits for. @param what comes after the target is online. */
export function waitingText(what: string, target: string, waitOnline: number | undefined): string {
  if (waitOnline === undefined) return `Waiting for ${what}.`;
  return `Waiting for ${target} to come online, up to ${waitOnline / 1000} s, then for ${what}.`;
}

/** The payload that a word gives, or standard input for `-` or no word. @throws {Failure} `usage`. */
export async function readPayload(word: string | undefined, io: Input): Promise<JsonObject> {
  return payloadOf(await payloadText(word, io));
}

async function payloadText(word: string | undefined, io: Input): Promise<string> {
  if (word !== undefined && word !== "-") return word;
  if ((io.stdin as { isTTY?: boolean }).isTTY && word === undefined)
    throw usageError("The payload is missing. Give it as the second word, or pipe it in.");
  return await readInput(io);
}

function payloadOf(given: string): JsonObject {
  try {
    const value: unknown = parseJson(given);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as JsonObject;
  } catch {
    // Reported below, without the text.
  }
  throw usageError("The payload is not a JSON object.", `Quote it as one word, for example '{"message":"Hello"}'.`);
}

interface HttpAddress {
  readonly host: string;
  readonly port: number;
}

/**
 * Where `--http` listens. Other machines reach it only where somebody says so.
 * @param names what they call this machine. @throws {Failure} `usage`.
 */
export function httpAddress(text: string, names: readonly string[]): HttpAddress {
  const [, host = "", digits] = /^\[?([^[\]]+)\]?:(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (!(port <= 65_535)) throw usageError("--http must be an address and a port, such as 127.0.0.1:7300.");
  if (isLoopback(host) || names.length > 0) return { host, port };
  throw usageError(
    "--http listens for this machine only.",
    "To serve other machines, add --http-name with the name that they use. Put TLS in front, because the token is readable on the way.",
  );
}

/** @param host without the brackets of an IPv6 address. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || (isIPv4(host) && host.startsWith("127."));
}
