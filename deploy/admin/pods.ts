import { readFile } from "node:fs/promises";
import { textIn } from "relay-runtime/files.ts";

const ANSWER_WITHIN_MS = 5000;

/** A single pod does not answer what it was asked, be it that there is none or that it has another key: others may. */
class UnansweredError extends Error {}

/** At least one answer, and of each pod that gave none a sentence that says why. */
export interface Answers<Answer> {
  readonly answers: readonly Answer[];
  readonly unanswered: readonly string[];
}

/** A path, and a member that its answers have: whatever else answers there is no admin listener. */
export interface Question {
  readonly path: string;
  readonly member: string;
  readonly body?: object;
}

/** The admin listeners of some pods, which share a key. */
export class Pods {
  readonly #urls: readonly string[];
  readonly #key: string;

  private constructor(urls: readonly string[], key: string) {
    this.#urls = urls;
    this.#key = key;
  }

  /** @throws {Error} when the key file cannot be read, or holds no key. */
  static async at(urls: readonly string[], keyFile: string): Promise<Pods> {
    const bytes = await readFile(keyFile).catch((error: NodeJS.ErrnoException) => {
      throw new Error(`The key file ${keyFile} cannot be read (${error.code}).`);
    });
    const key = textIn(bytes, `The key file ${keyFile}`).trimEnd();
    if (!/^[\x21-\x7e]+$/.test(key))
      throw new Error(`The key file ${keyFile} must hold one line of visible ASCII characters.`);
    return new Pods(urls, key);
  }

  /** What the first of them that answers says, about the whole window: no other is needed. @throws {Error} that says why none does, or of a refusal. */
  async askFirst<Answer>(question: Question): Promise<Answers<Answer>> {
    const unanswered: string[] = [];
    for (const url of this.#urls) {
      try {
        return { answers: [(await this.#ask(url, question)) as Answer], unanswered: [] };
      } catch (error) {
        if (!(error instanceof UnansweredError)) throw error;
        unanswered.push(error.message);
      }
    }
    throw new Error(unanswered.join("\n"));
  }

  /** What each of them says that answers. @throws {Error} that says why none does, or of a refusal. */
  async askAll<Answer>(question: Question): Promise<Answers<Answer>> {
    const results = await Promise.allSettled(this.#urls.map((url) => this.#ask(url, question)));
    const reasons = results.flatMap((result) => (result.status === "rejected" ? [result.reason as Error] : []));
    const refusal = reasons.find((reason) => !(reason instanceof UnansweredError));
    if (refusal !== undefined) throw refusal;
    const answers = results.flatMap((result) => (result.status === "fulfilled" ? [result.value as Answer] : []));
    const unanswered = reasons.map(({ message }) => message);
    if (answers.length === 0) throw new Error(unanswered.join("\n"));
    return { answers, unanswered };
  }

  async #ask(url: string, { path, member, body }: Question): Promise<unknown> {
    const answer = await fetch(`${url}${path}`, {
      method: body === undefined ? "GET" : "POST",
      headers: { authorization: `Bearer ${this.#key}`, ...(body && { "content-type": "application/json" }) },
      ...(body && { body: JSON.stringify(body) }),
      // The key is for this address alone.
      redirect: "error",
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
    }).catch((error: Error & { cause?: { code?: string } }) => {
      throw new UnansweredError(
        `No pod answers at ${url} (${error.cause?.code ?? error.name}): --url or ADMIN_PORT says where.`,
      );
    });
    const value: unknown = await answer.json().catch(() => undefined);
    const members = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
    if (answer.status === 401)
      throw new UnansweredError(`${url} answers 401: the key file holds another key than the pod's.`);
    if (answer.ok && member in members) return value;
    if (answer.ok || typeof members.title !== "string")
      throw new UnansweredError(`What answers at ${url} (${answer.status}) is no admin listener.`);
    const text = `${url} answers ${answer.status}: ${members.title} ${members.hint ?? ""}`.trimEnd();
    throw answer.status >= 500 ? new UnansweredError(text) : new Error(text);
  }
}
