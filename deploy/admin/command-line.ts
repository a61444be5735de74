import { parseArgs } from "node:util";
import { AGENT_ID_PATTERN } from "relay-protocol/wire/ids.ts";
import type { Environment } from "relay-runtime/settings.ts";

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
export function urlsOf({ url = [] }: Options, { ADMIN_PORT: port }: Environment): string[] {
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
export function holderQueryOf({ key, issuer }: Options): string {
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
