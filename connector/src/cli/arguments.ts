import { type ParseArgsOptionsConfig, parseArgs } from "node:util";
import { AGENT_ID, agentIdProblem } from "../agent-id.ts";
import { type Failure, usageError } from "./failure.ts";
import { nearest } from "./nearest.ts";

/** Options of every command. */
const COMMON = { json: { type: "boolean" }, help: { type: "boolean", short: "h" } } as const;

/** Options of commands that act as an agent. */
export const AGENT_OPTIONS = { key: { type: "string" }, url: { type: "string" } } as const;

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
    return parseArgs({ args, options: { ...COMMON, ...options }, allowPositionals: true });
  } catch (error) {
    const [sentence] = (error as Error).message.split(/\.\s|\n/);
    const [, unknown] = /^Unknown option '--?([^']+)'/.exec(sentence ?? "") ?? [];
    const meant = unknown && nearest(unknown, Object.keys({ ...COMMON, ...options }));
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
    "A secret is not allowed on the command line: every user of this machine can read it there, and the shell records it.",
    "Put it into a key file (--key FILE, made by: relay keygen), or into RELAY_PRIVATE_KEY, RELAY_SECRET or RELAY_API_KEY. Treat this one as leaked.",
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
