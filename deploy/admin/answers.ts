import { readFile } from "node:fs/promises";
import { textIn } from "relay-runtime/files.ts";

/** The answers of an admin listener. Source: docs/operations.md#admin. */

interface PodCounts {
  readonly id: string;
  readonly connections: number;
  readonly registered_connections: number;
  readonly agents: number;
  readonly outbox_bytes: number;
}

interface WindowCounts {
  readonly window: { readonly id: string; readonly since: string };
  readonly agents: { readonly online: number; readonly stale: number; readonly offline: number };
  readonly unavailable_partitions: readonly number[];
}

export type CountsAnswer = WindowCounts & { readonly pod: PodCounts };

/** Of several pods. */
type Counts = WindowCounts & { readonly pods: readonly PodCounts[] };

export interface Agents {
  readonly kind: string;
  readonly id: string;
  readonly total: number;
  readonly truncated: boolean;
  readonly complete: boolean;
  readonly agents: readonly {
    readonly agent: string;
    readonly presence: string;
    readonly congested: boolean;
    readonly last_seen: string | null;
    readonly online_since: string | null;
  }[];
}

interface Sender {
  readonly kind: string;
  readonly id: string;
  readonly envelopes: number;
  readonly bytes: number;
}

interface Refused {
  readonly kind: string;
  readonly id: string;
  readonly times: number;
}

interface RefusedCode {
  readonly code: string;
  readonly times: number;
}

interface Noise {
  readonly span_seconds: number;
  readonly by_envelopes: readonly Sender[];
  readonly by_bytes: readonly Sender[];
  readonly refusals: {
    readonly since: string;
    readonly by_sender: readonly Refused[];
    readonly by_code: readonly RefusedCode[];
  };
}

export type NoisiestAnswer = Noise & { readonly pod: string };

/** Of several pods. */
type Noisiest = Noise & { readonly pods: readonly string[] };

const ANSWER_WITHIN_MS = 5000;

/** A single pod does not answer what it was asked, be it that there is none or that it has another key: others may. */
class UnansweredError extends Error {}

/** At least one answer, and of each pod that gave none a sentence that says why. */
interface Answers<Answer> {
  readonly answers: readonly Answer[];
  readonly unanswered: readonly string[];
}

/** A path, and a member that its answers have: whatever else answers there is no admin listener. */
interface Question {
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

/** Of the window what the first pod says, and each pod's own part. Pure. */
export function mergedCounts(answers: readonly CountsAnswer[]): Counts {
  const [{ pod: _, ...ofWindow }] = answers as [CountsAnswer];
  return { ...ofWindow, pods: answers.map(({ pod }) => pod) };
}

/** What each sender sent to all of the pods, and how often it was refused there. Pure. @param most of each list. */
export function mergedNoise(answers: readonly NoisiestAnswer[], most: number): Noisiest {
  // A sender may be among the first by one measure alone: of each pod once.
  const senders = answers.flatMap(({ by_envelopes, by_bytes }) => [
    ...new Map([...by_envelopes, ...by_bytes].map((sender) => [nameOf(sender), sender])).values(),
  ]);
  const sent = summed(senders, nameOf, (a, b) => ({
    ...a,
    envelopes: a.envelopes + b.envelopes,
    bytes: a.bytes + b.bytes,
  }));
  const top = (by: "envelopes" | "bytes") => sent.toSorted((a, b) => b[by] - a[by]).slice(0, most);
  const refusals = answers.map((answer) => answer.refusals);
  return {
    pods: answers.map(({ pod }) => pod),
    span_seconds: Math.max(...answers.map(({ span_seconds }) => span_seconds)),
    by_envelopes: top("envelopes"),
    by_bytes: top("bytes"),
    refusals: {
      since: refusals.map(({ since }) => since).sort()[0] as string,
      by_sender: mostOften(
        refusals.flatMap(({ by_sender }) => by_sender),
        nameOf,
        most,
      ),
      by_code: mostOften(
        refusals.flatMap(({ by_code }) => by_code),
        ({ code }: RefusedCode) => code,
        most,
      ),
    },
  };
}

function nameOf({ kind, id }: Pick<Sender, "kind" | "id">): string {
  return `${kind} ${id}`;
}

function mostOften<Item extends { readonly times: number }>(
  items: readonly Item[],
  nameOfItem: (item: Item) => string,
  most: number,
): Item[] {
  const all = summed(items, nameOfItem, (a, b) => ({ ...a, times: a.times + b.times }));
  return all.toSorted((a, b) => b.times - a.times).slice(0, most);
}

function summed<Item>(
  items: readonly Item[],
  nameOfItem: (item: Item) => string,
  sum: (a: Item, b: Item) => Item,
): Item[] {
  const byName = new Map<string, Item>();
  for (const item of items) {
    const name = nameOfItem(item);
    const before = byName.get(name);
    byName.set(name, before === undefined ? item : sum(before, item));
  }
  return [...byName.values()];
}

type Row = readonly (string | number)[];

/** What each command prints without `--json`. */
export function countsText({ window, agents, unavailable_partitions: missing, pods }: Counts): string {
  const { online, stale, offline } = agents;
  const without = missing.length === 0 ? "" : ` (without partitions ${missing.join(", ")}, which are out of reach)`;
  return [
    `window ${window.id} since ${window.since}\n`,
    `agents ${online} online, ${stale} stale, ${offline} offline${without}\n\n`,
    table(
      ["POD", "CONNECTIONS", "REGISTERED", "AGENTS", "OUTBOX BYTES"],
      pods.map((pod) => [pod.id, pod.connections, pod.registered_connections, pod.agents, pod.outbox_bytes]),
    ),
  ].join("");
}

export function agentsText({ kind, id, total, truncated, complete, agents }: Agents): string {
  const shown = truncated ? `, of which these ${agents.length} were seen last` : "";
  const known = complete ? "" : " that are known here";
  const rows = agents.map(({ agent, presence, congested, last_seen, online_since }) => [
    agent,
    congested ? `${presence}, congested` : presence,
    last_seen ?? "-",
    online_since ?? "-",
  ]);
  return `${kind} ${id}: ${total} ${total === 1 ? "agent" : "agents"}${known}${shown}\n\n${table(["AGENT", "PRESENCE", "LAST SEEN", "ONLINE SINCE"], rows)}`;
}

export function noisiestText({ pods, span_seconds, by_envelopes, by_bytes, refusals }: Noisiest): string {
  const senders = (list: Noisiest["by_bytes"]) =>
    table(
      ["KIND", "ID", "ENVELOPES", "BYTES"],
      list.map(({ kind, id, envelopes, bytes }) => [kind, id, envelopes, bytes]),
    );
  return [
    `Sent to ${pods.join(", ")} in ${span_seconds} s, by envelopes\n${senders(by_envelopes)}`,
    `by bytes\n${senders(by_bytes)}`,
    `Refused since ${refusals.since}\n${table(
      ["KIND", "ID", "TIMES"],
      refusals.by_sender.map(({ kind, id, times }) => [kind, id, times]),
    )}`,
    `by code, strangers included\n${table(
      ["CODE", "TIMES"],
      refusals.by_code.map(({ code, times }) => [code, times]),
    )}`,
  ].join("\n");
}

function table(head: Row, rows: readonly Row[]): string {
  const all = [head, ...rows].map((row) => row.map(String));
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  return all
    .map((row) => `${row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join("  ")}`.trimEnd())
    .map((line) => `${line}\n`)
    .join("");
}
