/** Where a relay is. */
export interface RelayAddress {
  readonly websocket: string;
  /** Of its HTTP side, without a slash at its end. */
  readonly base: string;
  /** With a port that is not the default: what a register names, and a credential may. */
  readonly host: string;
}

/** With host and port as its group. The URL standard reads a backslash as a slash. */
const AUTHORITY = /^(?:https?|wss?):\/\/([^\\/?#]*)/i;
const HOST_AND_PORT = /^(\[.*\]|[^:]*)(?::([^:]*))?$/s;
const INVALID_SCHEME = "The address must begin with http://, https://, ws:// or wss://.";
const CREDENTIALS = "The address has a user or a password, and neither is sent. Remove both, and the @.";
const QUERY = "The address has a query or a fragment, and neither is sent. Remove the ? or # and what follows.";
const NO_HOST = "The address has no host. Write one after //, such as https://relay.example.";
const INVALID_PORT = "The port of the address is not valid. Write a number up to 65535.";
const INVALID_HOST =
  "The host of the address is not valid. Write a name such as relay.example, or an IP address such as 127.0.0.1 or [::1].";

/**
 * From a base address (http, https) or a websocket's (ws, wss; path /ws when it has none). The base of a websocket that does not end
 * in /ws is the root of its host.
 * @param http the base, where it is elsewhere.
 * @throws TypeError for any other.
 */
export function relayAddress(given: string | URL, http?: string | URL): RelayAddress {
  const address = namedAddress("url", given);
  if (!http) return address;
  return { ...address, base: namedAddress("httpUrl", http).base };
}

/** As relayAddress. @param name of what gave the address, for the error. @throws TypeError */
export function namedAddress(name: string, given: string | URL): RelayAddress {
  const text = String(given).trim();
  const problem = problemOf(text);
  if (problem !== undefined) throw new TypeError(`${name}: ${problem}`);
  const url = new URL(text);
  const isBase = url.protocol.startsWith("http");
  const scheme = isBase ? url.protocol.replace("http", "ws") : url.protocol;
  const path = url.pathname.replace(/\/+$/, "");
  const websocket = isBase ? `${path}/ws` : path || "/ws";
  const parent = websocket.endsWith("/ws") ? websocket.slice(0, -"/ws".length) : "";
  const base = `${scheme.replace("ws", "http")}//${url.host}${parent}`;
  return {
    base,
    host: url.host,
    websocket: `${scheme}//${url.host}${websocket}`,
  };
}

/** What is wrong with an address, and what to write. Never the address itself: it may contain a password. */
function problemOf(text: string): string | undefined {
  const authority = AUTHORITY.exec(text)?.[1];
  if (authority === undefined) return INVALID_SCHEME;
  if (authority.includes("@")) return CREDENTIALS;
  if (/[?#]/.test(text)) return QUERY;
  const [, host, port = ""] = HOST_AND_PORT.exec(authority) ?? [];
  if (host === "") return NO_HOST;
  if (!/^\d*$/.test(port) || Number(port) > 65_535) return INVALID_PORT;
  return URL.canParse(text) ? undefined : INVALID_HOST;
}
