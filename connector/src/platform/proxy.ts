import { request } from "node:http";
import { BlockList, isIP, type Socket } from "node:net";
import { unescape as decoded } from "node:querystring";
import { PROXY } from "../limits.ts";
import { type FailedRequest, mayPass, type NetworkError, networkErrorOf, retryAfterOf } from "../network-errors.ts";

/** The way to a relay, through the proxy that the environment names. Source: docs/protocol.md#proxies. */

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

  constructor(networkError: NetworkError, proxyStatus?: number) {
    super(networkError.why);
    this.networkError = networkError;
    this.proxyStatus = proxyStatus;
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

function bare(hostname: string): string {
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

/** Asks the proxy once. Rejects with a ProxyFailure. Source: RFC 9110, section 9.3.6. */
export async function tunnelTo(target: Target, named: NamedProxy, signal: AbortSignal): Promise<Socket> {
  const { variable, url } = named;
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const inTime = AbortSignal.timeout(PROXY.answerWithinMs);
  const asked = request({
    method: "CONNECT",
    host: bare(url.hostname),
    port: Number(url.port) || 80,
    path: target.place,
    headers: { host: target.place, ...authorization(url) },
    agent: false,
    signal: AbortSignal.any([signal, inTime]),
  });
  asked.on("connect", ({ statusCode = 0, headers }, socket: Socket) => {
    if (statusCode >= 200 && statusCode < 300) return resolve(socket);
    socket.destroy();
    reject(refusal(statusCode, retryAfterOf(headers["retry-after"]), named, target));
  });
  asked.on("error", (error: FailedRequest) => {
    const [what, retry] = inTime.aborted ? (["does not answer", "later"] as const) : failureOf(error);
    const hint = `Start the proxy, correct ${variable}, or name ${target.host} in NO_PROXY.`;
    reject(new ProxyFailure({ why: `${shownProxy(named)} ${what}`, hint, retry }));
  });
  asked.end();
  return await promise;
}

function failureOf(error: FailedRequest): readonly [what: string, retry: NetworkError["retry"]] {
  if (error.code === "ECONNRESET") return ["ended the connection", "later"];
  if (error.code?.startsWith("HPE_")) return ["does not speak HTTP", "fix"];
  return [`is not reachable: ${networkErrorOf(error).why}`, "later"];
}

function refusal(
  status: number,
  retryAfterMs: number | undefined,
  named: NamedProxy,
  { host, place }: Target,
): ProxyFailure {
  const { variable, url } = named;
  const why = `${shownProxy(named)} answered with ${status}`;
  const failed = (hint: string, retry: NetworkError["retry"]) =>
    new ProxyFailure({ why, hint, retry, retryAfterMs }, status);
  if (status === 407) {
    const refused = `It does not take the user and the password of ${variable}. Percent-encode what is no letter or digit in them.`;
    const missing = `It wants a user and a password: ${variable}=http://user:password@host:port.`;
    return failed(url.username ? refused : missing, "fix");
  }
  if (mayPass(status)) return failed("It does not reach the relay at the moment: try again later.", "later");
  return failed(`It does not connect to ${place}: ask who runs it, or name ${host} in NO_PROXY.`, "fix");
}

/** Source: RFC 7617, section 2. */
function authorization({ username, password }: URL): Record<string, string> {
  if (username === "" && password === "") return {};
  const pair = `${decoded(username)}:${decoded(password)}`;
  return { "proxy-authorization": `Basic ${Buffer.from(pair).toString("base64")}` };
}
