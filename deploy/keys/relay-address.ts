/**
 * As connector/src/address.ts, which the images of this command do not have. A test holds both to one table:
 * connector-python/tests/addresses.json.
 */

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

/** What is wrong with an address, and what to write. Never the address itself: it may contain a password. */
export function addressProblem(text: string): string | undefined {
  const authority = AUTHORITY.exec(text)?.[1];
  if (authority === undefined) return INVALID_SCHEME;
  if (authority.includes("@")) return CREDENTIALS;
  if (/[?#]/.test(text)) return QUERY;
  const [, host, port = ""] = HOST_AND_PORT.exec(authority) ?? [];
  if (host === "") return NO_HOST;
  if (!/^\d*$/.test(port) || Number(port) > 65_535) return INVALID_PORT;
  return URL.canParse(text) ? undefined : INVALID_HOST;
}
