import { relayAddress } from "../address.ts";
import { membersOf, textOf } from "../frames.ts";
import type { Io } from "./command.ts";
import { Failure, usage } from "./failure.ts";

const DEFAULT_URL = "http://127.0.0.1:8080";
const ANSWER_WITHIN_MS = 10_000;
const MANIFEST_PATH = "/.well-known/signing-manifest.json";

/** What an error of the network means. Codes: `man 3 errno`, getaddrinfo, and Node's names for OpenSSL's. */
const NETWORK_FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "nothing listens there",
  ECONNRESET: "the connection was cut",
  ENOTFOUND: "there is no host of that name",
  EAI_AGAIN: "the name could not be looked up",
  EHOSTUNREACH: "the host cannot be reached",
  ENETUNREACH: "the network cannot be reached",
  ETIMEDOUT: "the host does not answer",
  UND_ERR_CONNECT_TIMEOUT: "the host does not answer",
  CERT_HAS_EXPIRED: "its certificate has expired",
  DEPTH_ZERO_SELF_SIGNED_CERT: "its certificate is self-signed",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another host",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "its certificate cannot be verified",
};

export interface Answer {
  readonly status: number;
  /** The members of the JSON object; none when it is no JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** The HTTP side of a relay. */
export class RelayHttp {
  /** The relay as it was named. */
  readonly url: string;
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly websocketUrl: string;
  readonly #signal: AbortSignal;

  /** @param url of the command line, before RELAY_URL. @throws {Failure} when it is no address of a relay. */
  constructor(url: string | undefined, { env, signal }: Pick<Io, "env" | "signal">) {
    this.url = url ?? (env.RELAY_URL || DEFAULT_URL);
    try {
      const { websocket, signingManifest } = relayAddress(this.url);
      this.websocketUrl = websocket;
      this.baseUrl = signingManifest.slice(0, -MANIFEST_PATH.length);
    } catch {
      throw usage("--url (or RELAY_URL) must begin with http://, https://, ws:// or wss://.");
    }
    this.#signal = signal;
  }

  /** @throws {Failure} `unreachable`, or `aborted`. Any answer of a relay resolves. */
  async ask(path: string, init: RequestInit = {}): Promise<Answer> {
    try {
      const signal = AbortSignal.any([this.#signal, AbortSignal.timeout(ANSWER_WITHIN_MS)]);
      const answer = await fetch(`${this.baseUrl}${path}`, { ...init, signal, redirect: "error" });
      return { status: answer.status, body: membersOf(await answer.json().catch(() => undefined)) };
    } catch (error) {
      if (this.#signal.aborted) throw new Failure("aborted", "Interrupted.", "Nothing more was done.");
      throw this.#unreachable(error);
    }
  }

  /** @throws {Failure} also for whatever is not a success. */
  async get(path: string): Promise<Answer["body"]> {
    return this.succeeded(await this.ask(path));
  }

  /** @param body a JSON value. */
  async post(path: string, body: string, headers: Record<string, string> = {}): Promise<Answer> {
    return await this.ask(path, { method: "POST", body, headers: { "content-type": "application/json", ...headers } });
  }

  /** The body of a success. @throws {Failure} with the relay's own words for anything else. */
  succeeded({ status, body }: Answer): Answer["body"] {
    if (body.ok === true && status < 300) return body;
    const code = textOf(body.code);
    if (code === undefined) throw this.#stranger();
    throw new Failure(code, faultsOf(body), textOf(body.hint) ?? "");
  }

  #unreachable(error: unknown): Failure {
    const { name, cause } = error as { name?: string; cause?: { code?: string } };
    const late = name === "TimeoutError" ? "it did not answer within 10 s" : undefined;
    const why = late ?? NETWORK_FAULTS[cause?.code ?? ""] ?? cause?.code ?? "the request failed";
    return new Failure(
      "unreachable",
      `No relay answers at ${this.baseUrl}: ${why}.`,
      "Start one with npm start, or say where yours is: --url or RELAY_URL.",
    );
  }

  #stranger(): Failure {
    return new Failure(
      "unreachable",
      `What answers at ${this.baseUrl} is no Agent Relay.`,
      "Check --url or RELAY_URL.",
    );
  }
}

/** The sentence of a problem document, and the fields that it names. Source: RFC 9457. */
function faultsOf({ title, detail, errors }: Answer["body"]): string {
  const fields = (Array.isArray(errors) ? errors : []).map((error) => {
    const { field, message } = membersOf(error);
    return ` ${textOf(field) ?? ""} ${textOf(message) ?? ""}.`;
  });
  return `${textOf(detail) ?? textOf(title) ?? "The relay refused."}${fields.join("")}`;
}
