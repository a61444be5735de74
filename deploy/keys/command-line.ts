import { parseArgs } from "node:util";
import { AGENT_ID_PATTERN } from "protocol/contract/agent-id.ts";
import { WEBSOCKET_PATH } from "protocol/contract/surfaces.ts";
import type { Io } from "../local/io.ts";

/** The command line is invalid. */
export class UsageError extends Error {}

export type Options = ReturnType<typeof parseCommandLine>["values"];

/** @throws {UsageError} */
export function parseCommandLine(args: string[]) {
  try {
    return parseArgs({
      args: withJoinedThumbprints(args),
      allowPositionals: true,
      options: {
        agent: { type: "string", multiple: true },
        agents: { type: "string", multiple: true },
        alg: { type: "string" },
        days: { type: "string" },
        "key-id": { type: "string" },
        "expires-at": { type: "string" },
        file: { type: "string" },
        help: { type: "boolean", short: "h" },
        "issued-before": { type: "string" },
        issuer: { type: "string" },
        "issuer-file": { type: "string" },
        key: { type: "string" },
        listed: { type: "boolean" },
        out: { type: "string" },
        url: { type: "string" },
        wait: { type: "string" },
      },
    });
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** The one agent of `--agent`: an id, no namespace. @throws {UsageError} */
export function oneAgentOf({ agent = [] }: Options): string {
  const [id = "", ...more] = agent;
  if (!AGENT_ID_PATTERN.test(id) || more.length > 0) {
    throw new UsageError("--agent is required: one agent id, such as agent://alice.");
  }
  return id;
}

/** `--expires-at`, or undefined. @throws {UsageError} */
export function expiryOf({ "expires-at": expiresAt }: Options): string | undefined {
  if (expiresAt !== undefined && Date.parse(expiresAt) <= Date.now()) {
    throw new UsageError("--expires-at is in the past.");
  }
  return expiresAt;
}

const DEFAULT_URL = "http://127.0.0.1:8080";
const DEFAULT_WAIT_S = 10;
const MAX_WAIT_S = 600;

/** A relay that a command waits for, and how long. */
export interface Wait {
  /** Where it answers over HTTP, without a slash at its end. */
  readonly url: string;
  /** Where its websocket is, if elsewhere. */
  readonly websocketUrl?: string;
  readonly waitMs: number;
}

/** `--wait` and `--url`, and RELAY_HTTP_URL as the command `relay` has it. @throws {UsageError} */
export function waitOf(
  { url, wait = String(DEFAULT_WAIT_S) }: Options,
  { RELAY_URL, RELAY_HTTP_URL }: Io["env"],
): Wait {
  const seconds = /^\d{1,3}$/.test(wait) ? Number(wait) : Number.NaN;
  if (!(seconds <= MAX_WAIT_S)) throw new UsageError(`--wait is a number of seconds, at most ${MAX_WAIT_S}.`);
  const address = (url ?? (RELAY_URL || DEFAULT_URL)).replace(/\/+$/, "");
  const base = RELAY_HTTP_URL ? RELAY_HTTP_URL.replace(/\/+$/, "") : address;
  if (RELAY_HTTP_URL && !/^https?:$/.test(schemeOf(base))) {
    throw new UsageError("RELAY_HTTP_URL must begin with http:// or https://.");
  }
  if (!/^https?:$/.test(schemeOf(base)) || !/^(?:http|ws)s?:$/.test(schemeOf(address))) {
    throw new UsageError(
      "--url (or RELAY_URL) must begin with http:// or https://. If the relay's address is a websocket's, set RELAY_HTTP_URL to its HTTP address.",
    );
  }
  return { url: base, websocketUrl: websocketOf(address), waitMs: seconds * 1000 };
}

function schemeOf(address: string): string {
  return URL.parse(address)?.protocol ?? "";
}

/** Of a base address, or of the websocket itself: path /ws when it has none. */
function websocketOf(address: string): string {
  const isWhole = /^wss?:\/\/[^/]+\//i.test(address);
  return isWhole ? address : `${address.replace(/^http/i, "ws")}${WEBSOCKET_PATH}`;
}

/** The one name after a command. @param rule what the command takes. @throws {UsageError} */
export function onlyOne(names: readonly string[], rule: string): string {
  const [name] = names;
  if (name === undefined || names.length > 1) throw new UsageError(`${rule}; list shows them.`);
  return name;
}

/** A thumbprint may begin with a hyphen, which would make an option of its own of it. */
function withJoinedThumbprints(args: readonly string[]): string[] {
  return args.flatMap((arg, index) => {
    if (args[index - 1] === "--key") return [];
    const value = args[index + 1];
    return arg === "--key" && value !== undefined ? [`--key=${value}`] : [arg];
  });
}
