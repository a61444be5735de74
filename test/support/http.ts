/**
 * HTTP as any client speaks it, with a record of every answer. Each request has a connection of its own: the clock by which
 * fetch forgets idle ones stands while the process is busy, so that it would send into one that the relay has closed.
 */
export const OWN_CONNECTION = { connection: "close" } as const;

// biome-ignore lint/suspicious/noExplicitAny: what comes over the wire has no type yet.
type Body = any;

export interface Answer {
  readonly status: number;
  readonly body: Body;
  readonly headers: Headers;
}

export class HttpClient {
  /** Heads and bodies of all answers, as texts. */
  readonly answers: string[] = [];
  readonly #headers: Record<string, string>;

  /** @param headers go out with every request. */
  constructor(headers: Record<string, string> = {}) {
    this.#headers = { ...OWN_CONNECTION, ...headers };
  }

  async get(url: string): Promise<Answer> {
    return await this.#request(url, { method: "GET", headers: this.#headers });
  }

  /** @param body sent as JSON, unless it is a text, which is sent as it is. */
  async post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    return await this.#request(url, {
      method: "POST",
      headers: { ...this.#headers, "content-type": "application/json", ...headers },
      body: typeof body === "string" ? body : JSON.stringify(body),
    });
  }

  async #request(url: string, init: RequestInit): Promise<Answer> {
    const response = await fetch(url, init);
    const text = await response.text();
    this.answers.push(JSON.stringify([...response.headers]), text);
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text), headers: response.headers };
  }
}
