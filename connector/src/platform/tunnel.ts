import { connect, type Socket } from "node:net";
import { PROXY } from "../limits.ts";
import {
  type FailedRequest,
  mayPass,
  type NetworkError,
  networkErrorOf,
  retryAfterOf,
  tryAgain,
} from "../network-errors.ts";
import { bare, type NamedProxy, ProxyFailure, shownProxy, type Target } from "./proxy.ts";

/** A connection through a proxy. Source: RFC 9110, section 9.3.6. */

const STATUS_LINE = /^HTTP\/1\.\d (\d{3})[ \r\n]/;
const HEAD_END = /\n\r?\n$/;
const RETRY_AFTER = /\nretry-after:([\t -~]*)\r?\n/i;

/** Asks the proxy once. Rejects with a ProxyFailure. */
export async function tunnelTo(target: Target, named: NamedProxy, signal: AbortSignal): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const { url, variable } = named;
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
    if (isRefusal(statusOf(answer))) return end(refusalIn(answer, named, target));
    const hint = `Start the proxy, correct ${variable}, or name ${target.host} in NO_PROXY.`;
    end(new ProxyFailure({ why: `${shownProxy(named)} ${what}`, hint, retry }));
  };
  const timers = [setTimeout(fail, PROXY.answerWithinMs, "does not answer")];
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
    const isRefused = isRefusal(statusOf(answer)) && timers.length === 1;
    if (isRefused) timers.push(setTimeout(fail, PROXY.headersWithinMs, "does not answer"));
  };
  socket.on("readable", read);
  socket.on("error", (error: FailedRequest) => fail(failureOf(error)));
  socket.on("close", () => fail("ended the connection"));
  socket.write(requestFor(target, url));
  return await promise.finally(() => {
    for (const timer of timers) clearTimeout(timer);
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
