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
export function addressProblem(text: string): string | undefined {
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
