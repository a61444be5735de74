import { request } from "node:http";
import { BlockList, isIP, type Socket } from "node:net";
import { unescape as decoded } from "node:querystring";
import { PROXY } from "../limits.ts";
import { type FailedRequest, mayPass, type NetworkError, networkErrorOf } from "../network-errors.ts";

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

/** A proxy made no connection. */
export class ProxyFailure extends Error {
  readonly networkError: NetworkError;
  /** Of its answer to CONNECT; undefined where there was none. */
  readonly proxyStatus: number | undefined;

  constructor(why: string, hint: string, retry: NetworkError["retry"], proxyStatus?: number) {
    super(why);
    this.networkError = { why, hint, retry };
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
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.parse(address);
  const isPlain = url?.protocol === "http:" && url.pathname === "/" && !url.search && !url.hash && url.port !== "0";
  if (isPlain && !/\s/.test(address)) return url;
  throw new ProxyFailure(
    `${variable} names no proxy that can be used`,
    `Write http://host:port, or http://user:password@host:port. SOCKS and proxies over TLS are not supported. NO_PROXY=${host} goes without a proxy.`,
    "fix",
  );
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
export async function tunnelTo(target: Target, { variable, url }: NamedProxy, signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const inTime = AbortSignal.timeout(PROXY.answerWithinMs);
  const proxy = shownProxy({ variable, url });
  const asked = request({
    method: "CONNECT",
    host: bare(url.hostname),
    port: Number(url.port) || 80,
    path: target.place,
    headers: { host: target.place, ...authorization(url) },
    agent: false,
    signal: AbortSignal.any([signal, inTime]),
  });
  asked.on("connect", ({ statusCode = 0 }, socket: Socket) => {
    if (statusCode >= 200 && statusCode < 300) return resolve(socket);
    socket.destroy();
    reject(refusal(`${proxy} answered with ${statusCode}`, statusCode, { variable, url }, target));
  });
  asked.on("error", (error: FailedRequest) => {
    const [what, retry] = inTime.aborted ? (["does not answer", "later"] as const) : failureOf(error);
    const hint = `Start the proxy, correct ${variable}, or name ${target.host} in NO_PROXY.`;
    reject(new ProxyFailure(`${proxy} ${what}`, hint, retry));
  });
  asked.end();
  return await promise;
}

function failureOf(error: FailedRequest): readonly [what: string, retry: NetworkError["retry"]] {
  if (error.code === "ECONNRESET") return ["ended the connection", "later"];
  if (error.code?.startsWith("HPE_")) return ["does not speak HTTP", "fix"];
  return [`is not reachable: ${networkErrorOf(error).why}`, "later"];
}

function refusal(why: string, status: number, { variable, url }: NamedProxy, { host, place }: Target): ProxyFailure {
  if (status === 407) {
    const hint = url.username
      ? `It does not take the user and the password of ${variable}. Percent-encode what is no letter or digit in them.`
      : `It wants a user and a password: ${variable}=http://user:password@host:port.`;
    return new ProxyFailure(why, hint, "fix", status);
  }
  if (mayPass(status)) {
    const hint = "It does not reach the relay at the moment: try again later.";
    return new ProxyFailure(why, hint, "later", status);
  }
  const hint = `It does not connect to ${place}: ask who runs it, or name ${host} in NO_PROXY.`;
  return new ProxyFailure(why, hint, "fix", status);
}

/** Source: RFC 7617, section 2. */
function authorization({ username, password }: URL): Record<string, string> {
  if (username === "" && password === "") return {};
  const pair = `${decoded(username)}:${decoded(password)}`;
  return { "proxy-authorization": `Basic ${Buffer.from(pair).toString("base64")}` };
}
