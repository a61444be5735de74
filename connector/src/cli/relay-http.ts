import { setTimeout as delay } from "node:timers/promises";
import { namedAddress, type RelayAddress } from "../address.ts";
import { knownRetry } from "../errors.ts";
import { membersOf, textOf, waitOf } from "../frames.ts";
import { AnswerTooLarge, HttpClient } from "../http-client.ts";
import { type FailedRequest, networkErrorOf, noRelayAt, type StrangeAnswer, wasNeverSent } from "../network-errors.ts";
import { parseJson } from "../parse-json.ts";
import type { HttpRequest } from "../platform/contract.ts";
import { saidText, shownText } from "../said-text.ts";
import { Failure, usageError, withAuthorities } from "./failure.ts";
import type { Io } from "./io.ts";

const DEFAULT_URL = "http://127.0.0.1:8080";
const ANSWER = { timeoutMs: 10_000, maxBytes: 1_048_576 };

export interface Answer extends StrangeAnswer {
  /** The members of the JSON object; empty for anything else. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** The HTTP side of a relay. */
export class RelayHttp {
  /** The address as it was given. */
  readonly url: string;
  /** Of RELAY_HTTP_URL: where the relay answers over HTTP, if elsewhere. */
  readonly httpUrl: string | undefined;
  /** Nobody gave it. */
  readonly isDefault: boolean;
  readonly client: HttpClient;
  readonly websocketUrl: string;
  /** With a port that is not the default: what a register names. */
  readonly host: string;
  readonly #signal: AbortSignal;
  readonly #waiting: (ms: number) => void;

  /**
   * @param url of the command line, before RELAY_URL.
   * @param waiting called when a read has to wait so many ms.
   * @throws {Failure} when it is invalid.
   */
  constructor(
    url: string | undefined,
    { env, signal }: Pick<Io, "env" | "signal">,
    waiting: (ms: number) => void = () => {},
  ) {
    this.#waiting = waiting;
    this.isDefault = url === undefined && !env.RELAY_URL;
    this.url = url ?? (env.RELAY_URL || DEFAULT_URL);
    this.httpUrl = env.RELAY_HTTP_URL || undefined;
    const { websocket, base, host } = addressOf(url === undefined ? "RELAY_URL" : "--url", this.url);
    this.websocketUrl = websocket;
    const httpBase = this.httpUrl === undefined ? base : addressOf("RELAY_HTTP_URL", this.httpUrl).base;
    this.client = new HttpClient(httpBase, true);
    this.host = host;
    this.#signal = signal;
  }

  /** Without a trailing slash. */
  get baseUrl(): string {
    return this.client.base;
  }

  /** What corrects the address that is asked over HTTP. */
  get addressHint(): string {
    if (this.httpUrl !== undefined) return "Check RELAY_HTTP_URL, which holds this address.";
    return "Correct the host, port and path of --url or RELAY_URL. If only the websocket is at that address, set RELAY_HTTP_URL to the relay's HTTP address.";
  }

  /** @throws {Failure} `unreachable`, or `aborted`, with the outcome of a POST. Resolves with any HTTP answer. */
  async request(path: string, asked: HttpRequest = {}): Promise<Answer> {
    try {
      const { text, ...head } = await this.client.ask(path, ANSWER, this.#signal, asked);
      return { ...head, body: membersOf(bodyOf(text)) };
    } catch (error) {
      if (error instanceof AnswerTooLarge) return { status: error.status, headers: error.headers, body: {} };
      const isPost = asked.method === "POST";
      if (!this.#signal.aborted) throw this.#unreachable(error as FailedRequest, isPost);
      if (isPost) throw new Failure("aborted", "Interrupted.", "The request may have arrived.", { outcome: "unknown" });
      throw new Failure("aborted", "Interrupted.", "Nothing more was sent.");
    }
  }

  /** @throws {Failure} for anything but a success. */
  async get(path: string): Promise<Answer["body"]> {
    return this.requireSuccess(await this.request(path));
  }

  /** The presence of an agent. @throws {Failure} */
  async presence(agent: string): Promise<Answer["body"]> {
    return await this.get(`/api/onboarding/check-online?agent_id=${encodeURIComponent(agent)}`);
  }

  /** The state of a session. @throws {Failure} */
  async session(id: string): Promise<Answer["body"]> {
    return await this.get(`/sessions/${encodeURIComponent(id)}`);
  }

  /**
   * A public read in the middle of a command, asked again once the relay lets this address read again: many may share it.
   * @param deadline Unix ms. @returns undefined when the deadline passed first. @throws {Failure}
   */
  async patiently<T>(read: () => Promise<T>, deadline: number): Promise<T | undefined> {
    for (;;) {
      try {
        return await read();
      } catch (error) {
        const { code, retryAfterMs } = error as Partial<Failure>;
        if (code !== "rate_limited" || retryAfterMs === undefined) throw error;
        const left = deadline - Date.now();
        this.#waiting(Math.min(retryAfterMs, left));
        await delay(Math.min(retryAfterMs, left), undefined, { signal: this.#signal }).catch(() => {});
        if (retryAfterMs >= left) return undefined;
      }
    }
  }

  /** @param body a JSON value. */
  async post(path: string, body: string, headers: Record<string, string> = {}): Promise<Answer> {
    return await this.request(path, {
      method: "POST",
      body,
      headers: { "content-type": "application/json", ...headers },
    });
  }

  /**
   * The body of a success. @throws {Failure} with the relay's code and text for anything else.
   * @param isSend the request may have had an effect, whatever something else than the relay answers.
   */
  requireSuccess(answer: Answer, isSend = false): Answer["body"] {
    const { status, body } = answer;
    if (body.ok === true && status < 300) return body;
    const [code, retry] = [saidText(body.code), knownRetry(body.retry)];
    // Each refusal of a relay says when to try again.
    if (code === undefined || retry === undefined) throw this.#noRelay(answer, isSend);
    if (code === "not_found") throw this.#noGateway();
    const details = { retry, retryAfterMs: waitOf(body.retry_after_ms) };
    throw new Failure(code, problemText(body), saidText(body.hint) ?? "", details);
  }

  #unreachable(failed: FailedRequest, isPost: boolean): Failure {
    const { why, hint, retry, retryAfterMs } = networkErrorOf(failed);
    const isHttp = this.httpUrl === undefined && !this.url.startsWith("ws");
    const where = isHttp ? "--url or RELAY_URL sets the address." : this.addressHint;
    const outcome = wasNeverSent(failed) ? "refused" : "unknown";
    const told = withAuthorities({ message: `The relay at ${this.baseUrl} is not reachable: ${why}.`, hint });
    // A proxy, or an authority that is not trusted, is no fault of the address.
    const isOfAddress = failed.networkError === undefined && told.hint === hint;
    return new Failure("unreachable", told.message, isOfAddress ? `${told.hint} ${where}` : told.hint, {
      retry,
      retryAfterMs,
      ...(isPost && { outcome }),
    });
  }

  #noRelay(answer: Answer, isSend: boolean): Failure {
    const { message, hint = this.addressHint, ...told } = noRelayAt(this.baseUrl, answer);
    // An edge may have passed it on before it failed, or have changed the answer.
    const isOpen = answer.status >= 500 || answer.status === 408 || answer.status < 300;
    const outcome = isOpen ? "unknown" : "refused";
    return new Failure("unreachable", message, hint, {
      ...told,
      ...(isSend && { outcome }),
      edgeStatus: answer.status,
    });
  }

  /** A service of a relay that has the websocket alone. */
  #noGateway(): Failure {
    return new Failure("not_found", `No gateway of a relay answers at ${this.baseUrl}.`, this.addressHint, {
      retry: "fix",
    });
  }
}

/** @param name of what gave the address. @throws {Failure} `usage`, which never has the address itself. */
function addressOf(name: string, given: string): RelayAddress {
  try {
    return namedAddress(name, given);
  } catch (error) {
    const example = `${name}${name.startsWith("--") ? " " : "="}https://relay.example`;
    throw usageError((error as Error).message, `For example: ${example}`);
  }
}

/** The text of a problem document, with the invalid fields that it names. Source: RFC 9457. */
function problemText({ title, detail, errors }: Answer["body"]): string {
  const fields = (Array.isArray(errors) ? errors : []).map((error) => {
    const { field, message } = membersOf(error);
    return ` ${textOf(field) ?? ""} ${textOf(message) ?? ""}.`;
  });
  return shownText(`${textOf(detail) ?? textOf(title) ?? "The relay refused the request."}${fields.join("")}`);
}

/** Undefined for what is not JSON. */
function bodyOf(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
