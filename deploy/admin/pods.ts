import { readFile } from "node:fs/promises";

const ANSWER_WITHIN_MS = 5000;

/** The admin listeners of some pods, which share a key. */
export class Pods {
  readonly #urls: readonly string[];
  readonly #key: string;

  private constructor(urls: readonly string[], key: string) {
    this.#urls = urls;
    this.#key = key;
  }

  /** @throws {Error} when the key file cannot be read. */
  static async at(urls: readonly string[], keyFile: string): Promise<Pods> {
    const text = await readFile(keyFile, "utf8").catch((error: NodeJS.ErrnoException) => {
      throw new Error(`The key file ${keyFile} cannot be read (${error.code}).`);
    });
    return new Pods(urls, text.trimEnd());
  }

  /** What the first of them answers, about the whole window. @throws {Error} that says why there is no answer. */
  async askFirst<Answer>(path: string, body?: object): Promise<Answer> {
    return (await this.#ask(this.#urls[0] as string, path, body)) as Answer;
  }

  /** What each of them answers. @throws {Error} of the first that does not. */
  async askAll<Answer>(path: string): Promise<Answer[]> {
    return (await Promise.all(this.#urls.map((url) => this.#ask(url, path)))) as Answer[];
  }

  async #ask(url: string, path: string, body?: object): Promise<unknown> {
    const answer = await fetch(`${url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${this.#key}`, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
      // The key is for this address alone.
      redirect: "error",
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    }).catch((error: Error & { cause?: { code?: string } }) => {
      throw new Error(`No pod answers at ${url} (${error.cause?.code ?? error.name}): --url or ADMIN_PORT says where.`);
    });
    const value = (await answer.json().catch(() => ({}))) as { title?: string; hint?: string };
    if (answer.ok) return value;
    if (answer.status === 401) throw new Error(`${url} answers 401: the key file holds another key than the pod's.`);
    const { title = "What answers there is no admin listener.", hint = "" } = value;
    throw new Error(`${url} answers ${answer.status}: ${title} ${hint}`.trimEnd());
  }
}
