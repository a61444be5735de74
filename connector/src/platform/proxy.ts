import { request } from "node:http";
import { BlockList, isIP, connect as openTcp, type Socket } from "node:net";
import { unescape as decoded } from "node:querystring";
import { connect as openTls } from "node:tls";
import { type FailedRequest, mayPass, type NetworkError, networkErrorOf } from "../network-errors.ts";

/** The way to a relay through the proxy that the environment names. Of Node: other platforms have settings of their own. */

/** What reads like an environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A proxy, and where it was named. */
export interface Proxy {
  readonly variable: string;
  readonly url: URL;
}

/** A connection that no proxy made. */
export class ProxyFailure extends Error {
  /** Why, for who reads it. */
  readonly networkError: NetworkError;

  constructor(why: string, hint: string, retry: NetworkError["retry"]) {
    super(why);
    this.networkError = { why, hint, retry };
  }
}

/** Less than an attempt has, which would end without naming the proxy. */
const ANSWER_WITHIN_MS = 4000;
const WANTS_A_PASSWORD = 407;
/** That a host is this machine, whatever its name servers say. Source: RFC 6761, section 6.3. */
const LOCAL_NAME = /^(?:.*\.)?localhost$/;

/**
 * The proxy for an address; undefined where it is reached without one. Lower case names come first, as in curl.
 * @throws {ProxyFailure} for a value that is no address of a proxy.
 */
export function proxyFor({ protocol, hostname, port }: URL, environment: Environment): Proxy | undefined {
  const scheme = /^(?:https|wss):$/.test(protocol) ? "https" : "http";
  const variable = [`${scheme}_proxy`, `${scheme.toUpperCase()}_PROXY`].find((name) => environment[name]?.trim());
  if (variable === undefined) return undefined;
  const host = bare(hostname);
  const exceptions = environment.no_proxy || environment.NO_PROXY || "";
  if (goesWithout(host, port || (scheme === "https" ? "443" : "80"), exceptions)) return undefined;
  return { variable, url: proxyUrl(variable, environment[variable] as string, host) };
}

function proxyUrl(variable: string, given: string, host: string): URL {
  const text = given.trim();
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`;
  const url = URL.parse(address);
  if (url?.protocol === "http:" && !/\s/.test(address)) return url;
  throw new ProxyFailure(
    `${variable} names no proxy that can be used`,
    `Write http://host:port, or http://user:password@host:port. SOCKS and proxies over TLS are not supported. NO_PROXY=${host} goes without a proxy.`,
    "fix",
  );
}

/** @param exceptions the value of NO_PROXY. */
function goesWithout(host: string, port: string, exceptions: string): boolean {
  if (LOCAL_NAME.test(host) || isIn(host, "127.0.0.0/8") || host === "::1") return true;
  return exceptions.split(/[\s,]+/).some((entry) => entry === "*" || fits(entry.toLowerCase(), host, port));
}

/** Whether an entry of NO_PROXY means this host: by an address, a range of them, or a name that its own ends with. */
function fits(entry: string, host: string, port: string): boolean {
  const [, bracketed, named, givenPort = port] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(entry) ?? [];
  if (givenPort !== port) return false;
  const meant = bracketed ?? named ?? entry;
  if (isIP(host)) return isIn(host, meant);
  const name = meant.replace(/^\*?\.|\.$/g, "");
  return name !== "" && (host === name || host.endsWith(`.${name}`));
}

/** @param range an address, or one with the length of its prefix. */
function isIn(host: string, range: string): boolean {
  const [address = "", length, ...rest] = range.split("/");
  const [isV6, bits] = isIP(address) === 6 ? [true, 128] : [false, 32];
  if (!isIP(address) || !isIP(host) || rest.length > 0) return false;
  if (length !== undefined && !(/^\d+$/.test(length) && Number(length) <= bits)) return false;
  const list = new BlockList();
  list.addSubnet(address, Number(length ?? bits), isV6 ? "ipv6" : "ipv4");
  return list.check(host, isIP(host) === 6 ? "ipv6" : "ipv4");
}

/** Without the brackets of IPv6, and the dot of a name's root. */
function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$|\.$/g, "");
}

/**
 * A connection to the host of an address, with TLS where its scheme says so. Rejects with why there is none.
 * @param environment undefined: no proxy.
 */
export async function connectionTo(
  url: URL,
  environment: Environment | undefined,
  signal: AbortSignal,
): Promise<Socket> {
  const isSecure = /^(?:https|wss):$/.test(url.protocol);
  const host = bare(url.hostname);
  const port = Number(url.port) || (isSecure ? 443 : 80);
  const proxy = environment && proxyFor(url, environment);
  const tunnel = proxy && (await tunnelTo(`${url.hostname}:${port}`, host, proxy, signal));
  const servername = isIP(host) ? "" : host;
  if (isSecure)
    return openTls({ ...(tunnel ? { socket: tunnel } : { host, port }), servername, ALPNProtocols: ["http/1.1"] });
  return tunnel ?? openTcp({ host, port });
}

/** Asks the proxy once. Source: RFC 9110, section 9.3.6. */
async function tunnelTo(place: string, host: string, { variable, url }: Proxy, signal: AbortSignal): Promise<Socket> {
  const proxy = `the proxy http://${url.host} of ${variable}`;
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const inTime = AbortSignal.timeout(ANSWER_WITHIN_MS);
  const asked = request({
    method: "CONNECT",
    host: bare(url.hostname),
    port: Number(url.port) || 80,
    path: place,
    headers: { host: place, ...authorization(url) },
    agent: false,
    signal: AbortSignal.any([signal, inTime]),
  });
  asked.on("connect", ({ statusCode = 0 }, socket: Socket, first: Buffer) => {
    if (statusCode < 200 || statusCode > 299) {
      socket.destroy();
      return reject(refusal(proxy, statusCode, variable, place, host));
    }
    if (first.length > 0) socket.unshift(first);
    resolve(socket);
  });
  asked.on("error", (error: FailedRequest) => {
    const { why, retry } = inTime.aborted ? networkErrorOf({ code: "ETIMEDOUT" }) : networkErrorOf(error);
    const hint = `Start the proxy, correct ${variable}, or name ${host} in NO_PROXY.`;
    reject(new ProxyFailure(`${proxy} is not reachable: ${why}`, hint, retry));
  });
  asked.end();
  return await promise;
}

function refusal(proxy: string, status: number, variable: string, place: string, host: string): ProxyFailure {
  const why = `${proxy} answered with ${status}`;
  if (status === WANTS_A_PASSWORD) {
    return new ProxyFailure(why, `It wants a user and a password: ${variable}=http://user:password@host:port.`, "fix");
  }
  if (mayPass(status)) {
    return new ProxyFailure(why, "It does not reach the relay at the moment; the connector tries again.", "later");
  }
  const hint = `It lets nobody connect to ${place} from here: ask who runs it, or name ${host} in NO_PROXY.`;
  return new ProxyFailure(why, hint, "fix");
}

function authorization({ username, password }: URL): Record<string, string> {
  if (username === "" && password === "") return {};
  const pair = `${decoded(username)}:${decoded(password)}`;
  return { "proxy-authorization": `Basic ${Buffer.from(pair).toString("base64")}` };
}
