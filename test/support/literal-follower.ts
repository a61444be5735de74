import { type Answer, HttpClient } from "./http.ts";
import { expandQuery } from "./uri-template.ts";

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
