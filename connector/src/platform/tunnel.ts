import { connect, isIP, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { connect as openTls } from "node:tls";
import { PROXY } from "../limits.ts";
import {
  type FailedRequest,
  mayPass,
  type NetworkError,
  networkErrorOf,
  retryAfterOf,
  tryAgain,
  unspokenIn,
} from "../network-errors.ts";
import { bare, type NamedProxy, ProxyFailure, proxyFor, shownProxy, type Target, targetOf } from "./proxy.ts";

/** A connection to the host of an address, maybe through a proxy. Source: RFC 9110, section 9.3.6. */

/** As Node calls what makes its connections. */
type Connect = (options: unknown, connected: (error: Error | null, connection: Duplex) => void) => Duplex | undefined;

/** A start that outlasts a proxy which refuses outlasts a portal. */
const PORTAL_STATUS = 200;
const STATUS_LINE = /^HTTP\/1\.\d (\d{3})[ \r\n]/;
const HEAD_END = /\n\r?\n$/;
const RETRY_AFTER = /\nretry-after:([\t -~]*)\r?\n/i;

/** The way to the host of an address, for one attempt. */
export class Way {
  readonly #target: Target;
  readonly #usesProxy: boolean;
  readonly #signal: AbortSignal;
  #proxy: NamedProxy | undefined;
  #isThrough = false;
  /** TLS is there, and the request may be out. */
  #isSecured = false;

  /** @param usesProxy whether the environment's proxy counts. */
  constructor(url: string, usesProxy: boolean, signal: AbortSignal) {
    this.#target = targetOf(new URL(url));
    this.#usesProxy = usesProxy;
    this.#signal = signal;
  }

  /** @throws {ProxyFailure} for a value that names no proxy. */
  readonly connect: Connect = (_, connected) => {
    const [target, proxy] = [this.#target, this.#usesProxy ? proxyFor(this.#target, process.env) : undefined];
    // At once: what fails at once must find a listener.
    if (proxy === undefined) return this.#open();
    this.#proxy = proxy;
    tunnelTo(target, proxy, this.#signal).then(
      (tunnel) => {
        this.#isThrough = true;
        connected(null, this.#open(tunnel));
      },
      (error) => connected(error, undefined as never),
    );
    return undefined;
  };

  /** What the attempt fails with if its time is over now; undefined while no proxy is waited for. */
  get silence(): ProxyFailure | undefined {
    return this.#proxy && !this.#isThrough ? unanswered(this.#proxy, this.#target, "does not answer") : undefined;
  }

  /** What the attempt failed with, of which the proxy may be the reason. */
  failure(error: FailedRequest): FailedRequest {
    if (this.#isSecured) return Object.assign(error, { wasSent: true });
    const unspoken = this.#isThrough ? unspokenIn(error) : undefined;
    return this.#proxy && unspoken ? portal(this.#proxy, this.#target, unspoken) : error;
  }

  #open(tunnel?: Socket): Socket {
    return connectionTo(this.#target, tunnel).once("secureConnect", () => {
      this.#isSecured = true;
    });
  }
}

/** With TLS where the address says so. */
function connectionTo({ isSecure, host, port }: Target, tunnel?: Socket): Socket {
  if (!isSecure) return tunnel ?? connect({ host, port });
  // The certificate must be for the host, whatever the tunnel leads through.
  const name = { host, servername: isIP(host) ? "" : host };
  return openTls({ ...name, port, ...(tunnel && { socket: tunnel }), ALPNProtocols: ["http/1.1"] });
}

/** Asks the proxy once. Rejects with a ProxyFailure. The signal bounds its time. */
async function tunnelTo(target: Target, named: NamedProxy, signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const { url } = named;
  const socket = connect({ host: bare(url.hostname), port: Number(url.port) || 80, signal });
  // One character for each byte.
  let answer = "";
  let bytesLeft = PROXY.maxBytes;
  const end = (failure: ProxyFailure) => {
    reject(failure);
    socket.destroy();
  };
  const fail = (what: string, retry: NetworkError["retry"] = "later") => {
    // A refusal counts, however its headers end.
    end(isRefusal(statusOf(answer)) ? refusalIn(answer, named, target) : unanswered(named, target, what, retry));
  };
  let headersTimer: NodeJS.Timeout | undefined;
  // What follows the answer stays in the socket: it is the relay's.
  const read = () => {
    for (let byte = socket.read(1); byte !== null; byte = socket.read(1)) {
      answer += byte.toString("latin1");
      bytesLeft -= 1;
      if (bytesLeft < 0 || !mayBeHttp(answer)) return fail("does not speak HTTP", "fix");
      if (!HEAD_END.test(answer.slice(-3))) continue;
      const status = statusOf(answer);
      if (isRefusal(status)) return end(refusalIn(answer, named, target));
      if (status >= 200) return resolve(socket);
      // Another answer follows.
      answer = "";
    }
    if (isRefusal(statusOf(answer))) headersTimer ??= setTimeout(fail, PROXY.headersWithinMs, "does not answer");
  };
  socket.on("readable", read);
  socket.on("error", (error: FailedRequest) => fail(failureOf(error)));
  socket.on("close", () => fail("ended the connection"));
  socket.write(requestFor(target, url));
  return await promise.finally(() => {
    clearTimeout(headersTimer);
    socket.off("readable", read);
  });
}

/** The proxy knows the encoding of user and password. Source: RFC 7617, section 2. */
function requestFor({ place }: Target, { username, password }: URL): string {
  const pair = decoded(`${username}:${password}`).toString("base64");
  const authorization = username || password ? `Proxy-Authorization: Basic ${pair}\r\n` : "";
  return `CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n${authorization}\r\n`;
}

/** The bytes of a text in ASCII; a % that begins none is itself. */
function decoded(text: string): Buffer {
  const bytes = text.replace(/%([\da-f]{2})/gi, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, "latin1");
}

/** @param answer as far as it came. */
function mayBeHttp(answer: string): boolean {
  return answer.includes("\n") ? STATUS_LINE.test(answer) : "HTTP/1.".startsWith(answer.slice(0, 7));
}

/** NaN until it is known. */
function statusOf(answer: string): number {
  return Number(STATUS_LINE.exec(answer)?.[1]);
}

function isRefusal(status: number): boolean {
  return status >= 300 || status === 101;
}

function failureOf(error: FailedRequest): string {
  return error.code === "ECONNRESET" ? "ended the connection" : `is not reachable: ${networkErrorOf(error).why}`;
}

function unanswered(
  named: NamedProxy,
  { host }: Target,
  what: string,
  retry: NetworkError["retry"] = "later",
): ProxyFailure {
  const hint = `Start the proxy, correct ${named.variable}, or name ${host} in NO_PROXY.`;
  return new ProxyFailure({ why: `${shownProxy(named)} ${what}`, hint, retry });
}

/** It let the connection through, and something else than a relay answers in it. */
function portal(named: NamedProxy, { host, place }: Target, unspoken: "TLS" | "HTTP"): ProxyFailure {
  const why = `${shownProxy(named)} leads to something that does not speak ${unspoken}`;
  const other = unspoken === "TLS" ? "plain http, use http:// (or ws://)" : "TLS, use https:// (or wss://)";
  const hint = `It may show a page of its own in place of ${place}, such as a login: ask who runs it, or name ${host} in NO_PROXY. If the relay's port speaks ${other}.`;
  return new ProxyFailure({ why, hint, retry: "fix" }, PORTAL_STATUS, unspoken === "HTTP");
}

function refusalIn(answer: string, named: NamedProxy, { host, place }: Target): ProxyFailure {
  const { variable, url } = named;
  const status = statusOf(answer);
  const retryAfterMs = retryAfterOf(RETRY_AFTER.exec(answer)?.[1]?.trim());
  const why = `${shownProxy(named)} answered with ${status}`;
  const failed = (hint: string) => new ProxyFailure({ why, hint, retry: "fix" }, status);
  if (status === 407) {
    const refused = `It does not take the user and the password of ${variable}. Percent-encode what is no letter or digit in them.`;
    const missing = `It wants a user and a password: ${variable}=http://user:password@host:port.`;
    return failed(url.username ? refused : missing);
  }
  if (!mayPass(status)) return failed(`It does not connect to ${place}: ask who runs it, or name ${host} in NO_PROXY.`);
  const hint = `It does not reach the relay at the moment: ${tryAgain(retryAfterMs)}.`;
  return new ProxyFailure({ why, hint, retry: "later", retryAfterMs }, status);
}
