import { BlockList, isIP } from "node:net";
import type { NetworkError } from "../network-errors.ts";

/** Which proxy is on the way to a relay: the environment names it. Source: docs/protocol.md#proxies. */

/** Names of variables and their values. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Where an address leads. */
export interface Target {
  readonly isSecure: boolean;
  /** Without the brackets of IPv6, and without a dot at its end. */
  readonly host: string;
  readonly port: number;
  /** As CONNECT names it. */
  readonly place: string;
}

/** A proxy, and the variable that names it. */
export interface NamedProxy {
  readonly variable: string;
  readonly url: URL;
}

/** User and password, IPv6 or another host, port. The last @ ends the password. */
const PROXY_ADDRESS = /^(?:http:\/\/)?(?:[^/?#\\]*@)?(?:\[[\da-f:.]+\]|[\w.-]+)(?::\d{1,5})?\/?$/i;

/** A proxy made no connection. */
export class ProxyFailure extends Error {
  readonly networkError: NetworkError;
  /** Of its answer to CONNECT; undefined where there was none. */
  readonly proxyStatus: number | undefined;
  /** Whether it got the request itself, behind its answer to CONNECT. */
  readonly wasSent: boolean;

  constructor(networkError: NetworkError, proxyStatus?: number, wasSent = false) {
    super(networkError.why);
    this.networkError = networkError;
    this.proxyStatus = proxyStatus;
    this.wasSent = wasSent;
  }
}

/**
 * The proxy for an address; undefined where it is reached without one.
 * @throws {ProxyFailure} for a value that names none.
 */
export function proxyFor(target: Target, environment: Environment): NamedProxy | undefined {
  const variable = setOf(environment, target.isSecure ? "https_proxy" : "http_proxy");
  // Under CGI it is a header of a client.
  if (variable === undefined || (variable === "HTTP_PROXY" && environment.REQUEST_METHOD)) return undefined;
  const exceptions = setOf(environment, "no_proxy");
  if (goesWithout(target, exceptions ? (environment[exceptions] as string) : "")) return undefined;
  return { variable, url: proxyUrl(variable, environment[variable] as string, target) };
}

export function targetOf({ protocol, hostname, port }: URL): Target {
  const isSecure = /^(?:https|wss):$/.test(protocol);
  const number = Number(port) || (isSecure ? 443 : 80);
  return { isSecure, host: bare(hostname), port: number, place: `${hostname}:${number}` };
}

export function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$|\.$/g, "");
}

/** Which of the two spellings of a variable counts. */
function setOf(environment: Environment, name: string): string | undefined {
  return [name, name.toUpperCase()].find((spelling) => environment[spelling]?.trim());
}

/** Nothing of what may be a password is part of the address that errors name. */
function proxyUrl(variable: string, given: string, { host }: Target): URL {
  const text = given.trim();
  const isPlain = PROXY_ADDRESS.test(text) && !/\s/.test(text);
  const url = isPlain ? URL.parse(/^http:/i.test(text) ? text : `http://${text}`) : null;
  if (url !== null && url.port !== "0") return url;
  throw new ProxyFailure({
    why: `${variable} names no proxy that can be used`,
    hint: `Write http://host:port, or http://user:password@host:port. SOCKS and proxies over TLS are not supported. NO_PROXY=${host} goes without a proxy.`,
    retry: "fix",
  });
}

/** @param exceptions the value of NO_PROXY. */
function goesWithout(target: Target, exceptions: string): boolean {
  const { host } = target;
  // Whatever name servers say of them. Source: RFC 6761, section 6.3.
  if (isUnder(host, "localhost") || isIn(host, "127.0.0.0/8") || host === "::1") return true;
  return exceptions.split(/[\s,]+/).some((entry) => entry === "*" || fits(entry.toLowerCase(), target));
}

/** Whether an entry of NO_PROXY means this host. */
function fits(entry: string, { host, port }: Target): boolean {
  const [, bracketed, named, givenPort] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(entry) ?? [];
  if (givenPort !== undefined && Number(givenPort) !== port) return false;
  const meant = bracketed ?? named ?? entry;
  return isIP(host) ? isIn(host, meant) : isUnder(host, meant.replace(/^\*?\.|\.$/g, ""));
}

function isUnder(host: string, name: string): boolean {
  return name !== "" && (host === name || host.endsWith(`.${name}`));
}

/** @param range an address, or one with the length of its prefix. */
function isIn(host: string, range: string): boolean {
  const [address = "", length, ...rest] = range.split("/");
  const [family, bits] = isIP(address) === 6 ? (["ipv6", 128] as const) : (["ipv4", 32] as const);
  if (!isIP(address) || isIP(host) !== isIP(address) || rest.length > 0) return false;
  if (length !== undefined && !(/^\d+$/.test(length) && Number(length) <= bits)) return false;
  const list = new BlockList();
  list.addSubnet(address, Number(length ?? bits), family);
  return list.check(host, family);
}

/** Without user and password. */
export function shownProxy({ variable, url }: NamedProxy): string {
  return `the proxy http://${url.hostname}:${url.port || 80} of ${variable}`;
}
