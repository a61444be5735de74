import type { Ledger, LedgerContent } from "../../../support/ledger.ts";
import type { Told } from "./crowd.ts";

/** By how much the clock by which agents tell is ahead of the ledger's. */
export const AHEAD_MS = Number(process.hrtime.bigint()) / 1e6 - performance.now();

/** Puts into the ledger what agents of several processes tell of their messages, and counts what else they tell. */
export class Book {
  /** Failed sends and `error` events, by code. */
  readonly failures = new Map<string, number>();
  readonly problems = new Map<string, number>();
  /** Accepted sends that had to go out again. */
  repeated = 0;
  /** Sends without an answer when their process was killed. */
  heldByTheDead = 0;
  readonly #ledger: Ledger;
  /** Sends without an answer: by the life of their process, when they were sent. */
  readonly #open = new Map<string, Map<string, number>>();
  #backSince = 0;
  readonly #backAfter = new Map<string, number>();
  /** By agent: since when it is away, and what ends that. */
  readonly #away = new Map<string, { readonly from: number; readonly end: (at: number) => void }>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  hear(told: Told, life: string): void {
    if (told.told === "problem") {
      count(this.problems, told.code);
      return;
    }
    const at = told.at - AHEAD_MS;
    if (told.told === "online") {
      this.#cameOnline(told.agent, at);
      return;
    }
    const envelope = envelopeOf(told.id);
    const connection = `${envelope.from} of ${life}`;
    if (told.told === "sent") {
      this.#ledger.sent(envelope, connection, at);
      this.#openOf(life).set(told.id, at);
    } else if (told.told === "delivered") {
      this.#ledger.delivered({ ...envelope, to: told.agent }, life, "", at);
    } else {
      this.#settled({ ...told, at }, envelope, { life, connection });
    }
  }

  /** These cannot receive from now on, each until it is online again. */
  away(agents: readonly string[]): void {
    const from = performance.now();
    for (const agent of agents) this.#away.set(agent, { from, end: this.#ledger.gap(agent) });
  }

  /** The process was killed, and all is heard that it told. */
  bury(life: string): void {
    this.heldByTheDead += this.#openOf(life).size;
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

  /** A connector tells its agent of a message once, even if the relay has lost its guard. */
  get content(): LedgerContent {
    return { ...this.#ledger.content, guardLosses: [] };
  }

  #cameOnline(agent: string, at: number): void {
    const away = this.#away.get(agent);
    if (away === undefined || at < away.from) return;
    away.end(at);
    this.#away.delete(agent);
  }

  /** An outcome that is unknown is no answer, and of a repeat the first answer is lost. */
  #settled(
    told: Extract<Told, { readonly told: "accepted" | "failed" }>,
    envelope: ReturnType<typeof envelopeOf>,
    { life, connection }: { readonly life: string; readonly connection: string },
  ): void {
    const { at } = told;
    const { id, from } = envelope;
    const sentAt = this.#openOf(life).get(id) ?? 0;
    this.#openOf(life).delete(id);
    if (told.told === "failed") {
      count(this.failures, told.code);
      if (told.outcome === "refused") this.#ledger.answered(id, connection, { at, accepted: false, code: told.code });
      return;
    }
    const { duplicate, realtime: deliverable } = told;
    const answered = duplicate ? `${connection}, again` : connection;
    if (duplicate) {
      this.repeated += 1;
      this.#ledger.sent(envelope, answered, at);
    }
    this.#ledger.answered(id, answered, { at, accepted: true, duplicate, deliverable });
    if (sentAt > this.#backSince && !this.#backAfter.has(from)) this.#backAfter.set(from, at - this.#backSince);
  }

  #openOf(life: string): Map<string, number> {
    const open = this.#open.get(life) ?? new Map();
    this.#open.set(life, open);
    return open;
  }
}

/** The text of a message names its sender and its target. */
function envelopeOf(id: string) {
  const [from = "", to = ""] = id.split(" ");
  return { id, type: "message.send", from, to };
}

function count(counts: Map<string, number>, what: string): void {
  counts.set(what, (counts.get(what) ?? 0) + 1);
}
