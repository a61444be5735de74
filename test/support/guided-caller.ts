import { type Answer, HttpClient } from "./http.ts";

// biome-ignore lint/suspicious/noExplicitAny: what comes over the wire has no type yet.
type Document = any;

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
  readonly calls: Call[] = [];
  readonly #http = new HttpClient();
  readonly #self: { readonly agent: string; readonly apiKey: string };
  readonly #target: string;

  constructor(self: { readonly agent: string; readonly apiKey: string }, target: string) {
    this.#self = self;
    this.#target = target;
  }

  /** Guide → refresh packet → preflight → request → proof → gate. Returns what the gate says, and the guide. */
  async walk(guideUrl: string): Promise<{ guide: Document; accepted: Document; proof: Document; gate: string }> {
    const guide = this.#filledIn(await this.read(guideUrl));
    const packet = this.#filledIn(await this.read(guide.links.session_request_refresh_packet));
    for (const { check, required, request } of packet.preflight_checklist) {
      if (required && request !== undefined) expectField(check, await this.read(request.url), request.expect);
    }
    const accepted = await this.#send(packet);
    for (const expectation of packet.pass_when) expectField("the answer", accepted, expectation);

    const { endpoint, proofs, match } = guide.acceptance_monitoring;
    const report = await this.read(endpoint);
    const proof = report[proofs].find((record: Document) => record[match] === accepted[match]);
    const { post_refresh_gate } = packet;
    const gate = (await this.read(post_refresh_gate.endpoint))[post_refresh_gate.field];
    return { guide, accepted, proof, gate };
  }

  async read(url: string): Promise<Document> {
    return this.#recorded("GET", url, await this.#http.get(url));
  }

  async #send({ method, endpoint, auth_header, request_body }: Document): Promise<Document> {
    if (method !== "POST") throw new Error(`Cannot ${method}`);
    const headers = { [auth_header]: this.#self.apiKey };
    return this.#recorded(method, endpoint, await this.#http.post(endpoint, request_body, headers));
  }

  #recorded(method: string, url: string, { status, body }: Answer): Document {
    this.calls.push({ method, url, status });
    if (!body.ok) throw new Error(`${method} ${url} was answered ${status}: ${body.hint}`);
    return body;
  }

  /** The document with its own placeholders replaced wherever they stand. */
  #filledIn(document: Document): Document {
    const values: Record<string, string> = { from: this.#self.agent, to: this.#target };
    let text = JSON.stringify(document);
    for (const { field, placeholder } of (document.compact_refresh_packet ?? document).fill_in) {
      text = text.replaceAll(placeholder, values[field] as string);
    }
    return JSON.parse(text);
  }
}

function expectField(what: string, document: Document, { field, equals }: { field: string; equals: unknown }): void {
  const value = field.split(".").reduce((within: Document, name) => within?.[name], document);
  if (value !== equals) throw new Error(`${what} ${field} is ${value}, not ${equals}`);
}
