import { readFile } from "node:fs/promises";

const ANSWER_WITHIN_MS = 5000;

/** At an address there is none, or none that answers in time: the others go on to be asked. */
class SilentPodError extends Error {}

/** At least one answer, and of each pod that gave none a sentence that says so. */
export interface Answers<Answer> {
  readonly answers: readonly Answer[];
  readonly silent: readonly string[];
}

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

  /** What the first of them that answers says, about the whole window. @throws {Error} that says why none does, or of a refusal. */
  async askFirst<Answer>(path: string, body?: object): Promise<Answers<Answer>> {
    const silent: string[] = [];
    for (const url of this.#urls) {
      try {
        return { answers: [(await this.#ask(url, path, body)) as Answer], silent };
      } catch (error) {
        if (!(error instanceof SilentPodError)) throw error;
        silent.push(error.message);
      }
    }
    throw new Error(silent.join("\n"));
  }

  /** What each of them says that answers. @throws {Error} that says why none does, or of a refusal. */
  async askAll<Answer>(path: string): Promise<Answers<Answer>> {
    const results = await Promise.allSettled(this.#urls.map((url) => this.#ask(url, path)));
    const reasons = results.flatMap((result) => (result.status === "rejected" ? [result.reason as Error] : []));
    const refusal = reasons.find((reason) => !(reason instanceof SilentPodError));
    if (refusal !== undefined) throw refusal;
    const answers = results.flatMap((result) => (result.status === "fulfilled" ? [result.value as Answer] : []));
    const silent = reasons.map(({ message }) => message);
    if (answers.length === 0) throw new Error(silent.join("\n"));
    return { answers, silent };
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
      throw new SilentPodError(
        `No pod answers at ${url} (${error.cause?.code ?? error.name}): --url or ADMIN_PORT says where.`,
      );
    });
    const value = (await answer.json().catch(() => ({}))) as { title?: string; hint?: string };
    if (answer.ok) return value;
    if (answer.status === 401) throw new Error(`${url} answers 401: the key file holds another key than the pod's.`);
    const { title = "What answers there is no admin listener.", hint = "" } = value;
    throw new Error(`${url} answers ${answer.status}: ${title} ${hint}`.trimEnd());
  }
}
