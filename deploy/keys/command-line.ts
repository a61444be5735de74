import { parseArgs } from "node:util";
import { WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { AGENT_ID_PATTERN } from "relay-protocol/wire/ids.ts";
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
    throw new UsageError("--agent takes one agent id, such as agent://alice.");
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
  const [name, given] = url === undefined ? ["RELAY_URL", RELAY_URL || DEFAULT_URL] : ["--url", url];
  const address = addressOf(name, given);
  if (RELAY_HTTP_URL && !isHttp(RELAY_HTTP_URL)) {
    throw new UsageError("RELAY_HTTP_URL must begin with http:// or https://.");
  }
  const base = RELAY_HTTP_URL ? addressOf("RELAY_HTTP_URL", RELAY_HTTP_URL) : address;
  if (!isHttp(base)) {
    throw new UsageError(`${name} is the address of a websocket. Set RELAY_HTTP_URL to the relay's HTTP address.`);
  }
  return { url: base, websocketUrl: websocketOf(address), waitMs: seconds * 1000 };
}

/** Without slashes at its end. @param name of what gave it. @throws {UsageError} that never has the address itself. */
function addressOf(name: string, given: string): string {
  const address = given.trim();
  const problem = addressProblem(address);
  if (problem !== undefined) throw new UsageError(`${name}: ${problem}`);
  return address.replace(/\/+$/, "");
}

function isHttp(address: string): boolean {
  return /^\s*http/i.test(address);
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

/**
 * As connector/src/address.ts, which the images of this command do not have. A test holds both to one table:
 * connector-python/tests/addresses.json.
 */

/** Authority, path, and the rest. The URL standard reads a backslash as a slash. */
const ADDRESS = /^(?:https?|wss?):\/\/([^\\/?#]*)([^?#]*)(.*)$/is;
const HOST_AND_PORT = /^(\[.*\]|[^:]*)(?::([^:]*))?$/s;
const IPV6 = /^\[[\da-f:.]*\]$/i;
const NAME = /^[\w.-]+$/;
/** Source: RFC 1035, section 2.3.4. */
const LABELS = /^(?=.{1,253}\.?$)[^.]{1,63}(?:\.[^.]{1,63})*\.?$/;
/** A host whose last label is one counts as IPv4. Source: WHATWG URL, "ends-in-a-number checker". */
const ENDS_IN_NUMBER = /(?:^|\.)(?:\d+|0x[\da-f]*)\.?$/i;
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;
/** What the URL standard leaves as it is, and RFC 3986 allows. */
const PATH = /^[\w.~!$&'()*+,;=:%/-]*$/;
const DOT_SEGMENT = /\/(?:\.|%2e){1,2}(?:\/|$)/i;
const INVALID_SCHEME = "The address must begin with http://, https://, ws:// or wss://.";
const CREDENTIALS =
  "The address must not have a user or a password. Remove both and the @, or write %40 for an @ in the path.";
const QUERY = "The address has a query or a fragment, and neither is sent. Remove the ? or # and what follows.";
const NO_HOST = "The address has no host. Write one after //, such as https://relay.example.";
const INVALID_PORT = "The port of the address is not valid. Write a number up to 65535.";
const INVALID_HOST =
  "The host of the address is not valid. Write a name such as relay.example, or an IP address such as 127.0.0.1 or [::1].";
const NOT_ASCII =
  "The host of the address is not ASCII. Write its ASCII form, such as xn--bcher-kva.example for bücher.example.";
const INVALID_NAME =
  "The host of the address has a character that no host has, such as a space or %. Write a name of letters, digits, dots, - and _.";
const INVALID_IPV4 =
  "The host of the address ends in a number, so it must be an IPv4 address. Write its four numbers without leading zeros, such as 127.0.0.1.";
const INVALID_PATH =
  "The path of the address is not in its plain form. Write / for \\, leave out . and .. as names, and percent-encode other characters: a space is %20.";

/** What is wrong with an address, and what to write. Never the address itself: it may contain a password. */
function addressProblem(text: string): string | undefined {
  const [, authority, path = "", rest] = ADDRESS.exec(text) ?? [];
  if (authority === undefined) return INVALID_SCHEME;
  // A password may contain a slash: then the @ after it is in what looks like the path.
  if (text.includes("@")) return CREDENTIALS;
  if (rest) return QUERY;
  const [, host, port = ""] = HOST_AND_PORT.exec(authority) ?? [];
  if (host === undefined) return INVALID_HOST;
  if (host === "") return NO_HOST;
  if (!/^\d*$/.test(port) || Number(port) > 65_535) return INVALID_PORT;
  return hostProblem(host) ?? (PATH.test(path) && !DOT_SEGMENT.test(path) ? undefined : INVALID_PATH);
}

function hostProblem(host: string): string | undefined {
  if (/\P{ASCII}/u.test(host)) return NOT_ASCII;
  const isIpv6 = host.startsWith("[");
  if (!(isIpv6 ? IPV6 : NAME).test(host)) return isIpv6 ? INVALID_HOST : INVALID_NAME;
  if (ENDS_IN_NUMBER.test(host) && !IPV4.test(host)) return INVALID_IPV4;
  return (isIpv6 || LABELS.test(host)) && URL.canParse(`http://${host}`) ? undefined : INVALID_HOST;
}
