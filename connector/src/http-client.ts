import { request } from "#platform";
import type { FailedRequest, StrangeAnswer } from "./network-errors.ts";
import type { HttpRequest } from "./platform/contract.ts";

/** What a relay answers over HTTP. */
export interface HttpAnswer extends StrangeAnswer {
  readonly text: string;
}

/** There is more of it than its bound. */
export class AnswerTooLarge extends RangeError implements StrangeAnswer {
  readonly status: number;
  readonly headers: StrangeAnswer["headers"];

  constructor({ status, headers }: StrangeAnswer) {
    super("The answer is too large.");
    this.status = status;
    this.headers = headers;
  }
}

/** What an answer may cost. */
export interface AnswerBounds {
  readonly timeoutMs: number;
  /** Of the body, in browsers after its content coding: there a few bytes may stand for gigabytes. */
  readonly maxBytes: number;
}

/** Asks one relay over HTTP. */
export class HttpClient {
  /** Address of the relay (http, https), without a slash at its end. */
  readonly base: string;
  readonly #usesProxy: boolean;

  constructor(base: string, usesProxy: boolean) {
    this.base = base;
    this.#usesProxy = usesProxy;
  }

  /** Rejects when there is no answer within the bounds, or when the signal aborts. */
  async ask(path: string, bounds: AnswerBounds, signal: AbortSignal, asked: HttpRequest = {}): Promise<HttpAnswer> {
    const inTime = AbortSignal.any([signal, AbortSignal.timeout(bounds.timeoutMs)]);
    try {
      const { body, ...head } = await request(`${this.base}${path}`, this.#usesProxy, asked, inTime);
      const text = await textOf(body, bounds.maxBytes);
      if (text === undefined) throw new AnswerTooLarge(head);
      return { ...head, text };
    } catch (error) {
      signal.throwIfAborted();
      // It names the proxy that was waited for.
      if ((error as FailedRequest).networkError === undefined) inTime.throwIfAborted();
      throw error;
    }
  }
}

/** Undefined for one with more bytes. */
async function textOf(body: AsyncIterable<Uint8Array>, maxBytes: number): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) return undefined;
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
