import type { Attempt, Entry, Gap, LedgerContent } from "../../../support/ledger.ts";
import { monotonicMs } from "./monotonic.ts";
import type { Told } from "./protocol.ts";

/**
 * What agents of several processes told of their messages. Lines of two processes come in any order: what is earlier, only their
 * times tell.
 */
export class Book {
  /** Failed sends and `error` events, by code. */
  readonly failures = new Map<string, number>();
  readonly problems = new Map<string, number>();
  /** Accepted sends that had to go out again. */
  repeated = 0;
  /** Sends without an answer when their process was killed. */
  heldByTheDead = 0;
  readonly #entries = new Map<string, Entry>();
  /** Sends without an answer, by the life of their process. */
  readonly #open = new Map<string, Set<string>>();
  #backSince = 0;
  readonly #backAfter = new Map<string, number>();
  readonly #gaps: Gap[] = [];
  /** By agent: those that end when it comes online. */
  readonly #away = new Map<string, Gap>();

  hear(told: Told, life: string): void {
    if (told.told === "problem") count(this.problems, told.code);
    else if (told.told === "online") this.#cameOnline(told.agent, told.at);
    else if (told.told === "sent") this.#sent(told.id, told.at, life);
    else if (told.told === "delivered") this.#delivered(told.id, told.agent, told.at, life);
    else this.#settled(told, life);
  }

  /** These cannot receive from now on, each until it is online again. */
  away(agents: readonly string[]): void {
    const from = monotonicMs();
    for (const agent of agents) {
      const gap = { agent, from, to: Number.POSITIVE_INFINITY };
      this.#gaps.push(gap);
      this.#away.set(agent, gap);
    }
  }

  /** Nobody can receive while this goes on. */
  async silence(during: () => Promise<void>): Promise<void> {
    const gap = { agent: undefined, from: monotonicMs(), to: Number.POSITIVE_INFINITY };
    this.#gaps.push(gap);
    await during();
    gap.to = monotonicMs();
  }

  /** The process was killed, and all is heard that it told. */
  bury(life: string): void {
    this.heldByTheDead += this.#open.get(life)?.size ?? 0;
    this.#open.delete(life);
  }

  /** Sends of the living that have no answer yet. */
  get unsettled(): number {
    return [...this.#open.values()].reduce((sum, { size }) => sum + size, 0);
  }

  /** @returns by agent: milliseconds from then until the first answer to what it sent after then; filled as they come back. */
  backSince(then: number): ReadonlyMap<string, number> {
    this.#backSince = then;
    this.#backAfter.clear();
    return this.#backAfter;
  }

  get content(): LedgerContent {
    const entries = [...this.#entries.values()];
    return {
      entries: entries.filter(({ attempts }) => attempts.length > 0),
      gaps: this.#gaps,
      // A connector tells its agent of a message once, even if the relay has lost its guard.
      guardLosses: [],
      strangers: entries.filter(({ attempts }) => attempts.length === 0).map(({ id }) => id),
    };
  }

  #cameOnline(agent: string, at: number): void {
    const gap = this.#away.get(agent);
    if (gap === undefined || at < gap.from) return;
    gap.to = at;
    this.#away.delete(agent);
  }

  #sent(id: string, at: number, life: string): void {
    const { attempts, from } = this.#entry(id);
    attempts.push({ at, order: at, connection: `${from} of ${life}` });
    const open = this.#open.get(life) ?? new Set();
    this.#open.set(life, open.add(id));
  }

  /** Of a repeat the first answer is lost; an outcome that is unknown is none. */
  #settled(told: Extract<Told, { readonly told: "accepted" | "failed" }>, life: string): void {
    const { id, at } = told;
    const { attempts, from } = this.#entry(id);
    const first = attempts[0] as Attempt;
    this.#open.get(life)?.delete(id);
    if (told.told === "failed") {
      count(this.failures, told.code);
      if (told.outcome === "refused") first.answer = { at, accepted: false, code: told.code };
      return;
    }
    const { duplicate, realtime: deliverable } = told;
    const answer = { at, accepted: true, duplicate, deliverable } as const;
    if (duplicate) {
      this.repeated += 1;
      attempts.push({ at, order: at, connection: first.connection, answer });
    } else {
      first.answer = answer;
    }
    if (first.at > this.#backSince && !this.#backAfter.has(from)) this.#backAfter.set(from, at - this.#backSince);
  }

  #delivered(id: string, agent: string, at: number, life: string): void {
    this.#entry(id).deliveries.push({ at, order: at, agent, connection: life, copy: id });
  }

  #entry(id: string): Entry {
    const [from = "", to] = id.split(" ");
    const entry = this.#entries.get(id) ?? { id, type: "message.send", from, to, attempts: [], deliveries: [] };
    this.#entries.set(id, entry);
    return entry;
  }
}

function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}
