/** What a relay answers over HTTP. */
export interface HttpAnswer {
  readonly status: number;
  readonly text: string;
}

/** There is more of it than its bound. */
export class AnswerTooLarge extends RangeError {
  readonly status: number;

  constructor(status: number) {
    super("The answer is too large.");
    this.status = status;
  }
}

/** What an answer may cost. */
export interface AnswerBounds {
  readonly timeoutMs: number;
  /** Of the body, after its content coding: a few bytes may stand for gigabytes. */
  readonly maxBytes: number;
}

/**
 * Asks a relay. Rejects when there is no answer within the bounds, or when the signal aborts. A redirect is not followed: it would
 * let a relay ask whatever this machine can reach, as if it were here.
 */
export async function answerTo(
  url: string,
  { timeoutMs, maxBytes }: AnswerBounds,
  signal: AbortSignal,
  init: RequestInit = {},
): Promise<HttpAnswer> {
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const { status, body } = await fetch(url, { redirect: "error", ...init, signal: inTime });
  const text = body === null ? "" : await textOf(body, maxBytes);
  if (text === undefined) throw new AnswerTooLarge(status);
  return { status, text };
}

/** Undefined for one with more bytes. */
async function textOf(body: ReadableStream<Uint8Array>, maxBytes: number): Promise<string | undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let [text, bytes] = ["", 0];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    bytes += value.byteLength;
    if (bytes > maxBytes) {
      reader.cancel().catch(() => {});
      return undefined;
    }
    text += decoder.decode(value, { stream: true });
  }
}
