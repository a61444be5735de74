import { type Answer, HttpClient } from "./http.ts";
import { until } from "./until.ts";

/** A URI with a form-style query (RFC 6570, `{?a,b}` and `{&a,b}`), of the values that there are: names without one are left out. */
export function expandQuery(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/\{([?&])([\w,]+)\}/g, (_, first: string, names: string) => {
    const pairs = names.split(",").flatMap((name) => {
      const value = values[name];
      return value === undefined ? [] : [`${name}=${encodeURIComponent(value)}`];
    });
    return pairs.length === 0 ? "" : first + pairs.join("&");
  });
}

// biome-ignore lint/suspicious/noExplicitAny: what comes over the wire has no type yet.
type Document = any;

/** All that the program is given besides the address of a document. */
export interface Given {
  readonly agents: { readonly from: string; readonly target_agent_id: string };
  readonly apiKey: string;
}

/** Where a way ended: the document that had nothing more to send, where it stood, and who acts next. */
export interface End {
  readonly document: Document;
  readonly url: string;
  readonly who: string;
}

const MOST_REQUESTS = 12;

/**
 * A program that knows what docs/protocol.md says of `ready_to_run`, `missing` and `next`, and nothing else of the relay:
 * it sends what is ready as it stands, expands templates (RFC 6570) with what it was given, and stops where there is nothing
 * to send.
 */
export class LiteralFollower {
  /** Each document that was read, at its address. */
  readonly documents: { readonly url: string; readonly document: Document }[] = [];
  readonly calls: { readonly method: string; readonly url: string; readonly status: number }[] = [];
  readonly #http = new HttpClient();
  readonly #given: Given;

  constructor(given: Given) {
    this.#given = given;
  }

  async follow(start: string): Promise<End> {
    let url = start;
    for (;;) {
      const document = (await this.#read(url)).body;
      this.documents.push({ url, document });
      const { request, who, after, on_401 } = document.next;
      if (request === null) return { document, url, who };
      if (request.method === "GET") {
        url = document.templates.includes("next") ? expandQuery(request.url, this.#given.agents) : request.url;
      } else {
        const answer = await this.#send(request);
        if (answer.status === 401) return { document, url, who: on_401.who };
        url = withQuery(after.url, after.add, answer.body);
      }
    }
  }

  async #read(url: string): Promise<Answer> {
    return this.#recorded("GET", url, await this.#http.get(url));
  }

  async #send({ method, url, auth_header, body }: Document): Promise<Answer> {
    const headers = { [auth_header]: this.#given.apiKey };
    return this.#recorded(method, url, await this.#http.post(url, body, headers));
  }

  #recorded(method: string, url: string, answer: Answer): Answer {
    this.calls.push({ method, url, status: answer.status });
    if (this.calls.length > MOST_REQUESTS) throw new Error(`No end after ${MOST_REQUESTS} requests: ${url}`);
    return answer;
  }
}

/** The address with these members of an answer in its query. */
export function withQuery(url: string, names: readonly string[], values: Document): string {
  const added = new URL(url);
  for (const name of names) added.searchParams.set(name, values[name]);
  return added.href;
}

/** One call as it was made, and what came of it. */
export interface Call {
  readonly method: string;
  readonly url: string;
  readonly status: number;
}

/**
 * A program that knows the address of one guide, its own agent id, its API key and whom it wants to reach: all else,
 * paths, headers and what counts as success included, it reads from the documents.
 */
export class GuidedCaller {
  /** In order; a call that was repeated until it showed something stands here once. */
  readonly calls: Call[] = [];
  readonly #http = new HttpClient();
  readonly #self: { readonly agent: string; readonly apiKey: string };
  readonly #target: string;

  constructor(self: { readonly agent: string; readonly apiKey: string }, target: string) {
    this.#self = self;
    this.#target = target;
  }

  /** Guide → preflight → request → proof → gate. Returns what the gate says, and the guide. */
  async walk(guideUrl: string): Promise<{ guide: Document; accepted: Document; proof: Document; gate: Document }> {
    const guide = await this.#readyAt(guideUrl);
    const packet = guide.compact_refresh_packet;
    for (const { check, required, request } of packet.preflight_checklist) {
      if (required && request !== undefined) expectField(check, await this.read(request.url), request.expect);
    }
    const accepted = await this.#send(packet);
    for (const expectation of packet.pass_when) expectField("the answer", accepted, expectation);

    const proof = await this.#proofOf(accepted, guide.acceptance_monitoring);
    const { post_refresh_gate } = packet;
    const gate = await this.read(withQuery(post_refresh_gate.endpoint, post_refresh_gate.add, accepted));
    return { guide, accepted, proof, gate };
  }

  async read(url: string): Promise<Document> {
    return this.#recorded("GET", url, await this.#http.get(url));
  }

  /** Reads the proofs until the session is among them. */
  async #proofOf(accepted: Document, { endpoint, proofs, match }: Document): Promise<Document> {
    let proof: Document;
    await until(`${accepted[match]} is among the proofs`, async () => {
      const report = await this.read(endpoint);
      proof = report[proofs].find((record: Document) => record[match] === accepted[match]);
      return proof !== undefined;
    });
    return proof;
  }

  async #send({ method, endpoint, auth_header, request_body }: Document): Promise<Document> {
    if (method !== "POST") throw new Error(`Cannot ${method}`);
    const headers = { [auth_header]: this.#self.apiKey };
    return this.#recorded(method, endpoint, await this.#http.post(endpoint, request_body, headers));
  }

  #recorded(method: string, url: string, { status, body }: Answer): Document {
    const last = this.calls.at(-1);
    const isRepeated = last?.method === method && last.url === url && last.status === status;
    if (!isRepeated) this.calls.push({ method, url, status });
    if (!body.ok) throw new Error(`${method} ${url} was answered ${status}: ${body.hint}`);
    return body;
  }

  /** The document; when it says that something is missing, the same with that in its query. */
  async #readyAt(url: string): Promise<Document> {
    const document = await this.read(url);
    if (document.ready_to_run) return document;
    const values: Record<string, string> = { from: this.#self.agent, target_agent_id: this.#target };
    const complete = new URL(url);
    for (const name of document.missing) complete.searchParams.set(name, values[name] as string);
    return await this.read(complete.href);
  }
}

function expectField(what: string, document: Document, { field, equals }: { field: string; equals: unknown }): void {
  const value = field.split(".").reduce((within: Document, name) => within?.[name], document);
  if (value !== equals) throw new Error(`${what} ${field} is ${value}, not ${equals}`);
}
