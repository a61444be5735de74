import { keepNewest } from "../keep-newest.ts";
import { LOOK_UP } from "../limits.ts";
import { pause } from "../pause.ts";
import { within } from "../within.ts";
import { Allowance } from "./allowance.ts";
import { Concurrency } from "./concurrency.ts";
import { type Ask, askForCredential, type CredentialQuery } from "./credential-source.ts";
import type { Credential } from "./read-credential.ts";

/** What is known of one key of an agent. */
interface Entry {
  /** As it was found last; a look-up that fails changes nothing. */
  credential: Credential | undefined;
  hasFailed: boolean;
  /** By performance.now(). */
  askedAt: number;
  asking: Promise<void> | undefined;
}

/** `known`: of an agent whom somebody pinned names, or vouched for before. Anybody else may be one of very many. */
export type Standing = "known" | "stranger";

/** Credentials of other agents, looked up at the relay when they are needed. What is found is checked by nobody yet. */
export class SenderCredentials {
  readonly #ask: Ask;
  /** Each by agent and key; the one that was needed longest ago comes first. */
  readonly #known = new Map<string, Entry>();
  readonly #strangers = new Map<string, Entry>();
  readonly #concurrency = new Concurrency(LOOK_UP.atOnce);
  readonly #concurrencyOfStrangers = new Concurrency(LOOK_UP.strangers.atOnce);
  readonly #allowanceOfStrangers = new Allowance(LOOK_UP.strangers.perMinute);
  readonly #stopped = new AbortController();

  constructor(ask: Ask) {
    this.#ask = ask;
  }

  /**
   * The credential of a key of an agent, or without `keyId` the newest of any; undefined when the relay has none, or does
   * not say it within a second. Never rejects. That there is none counts for seconds only: the agent may come any moment.
   * @param time at which it is to hold, epoch milliseconds: one that had ended by then is looked up again.
   * @param standing a stranger's is looked up as far as the share of strangers goes; for others nothing is taken from them.
   */
  async find(query: CredentialQuery, time: number, standing: Standing = "known"): Promise<Credential | undefined> {
    const isStranger = standing === "stranger" && !this.#known.has(nameOf(query));
    const entry = isStranger ? entryIn(this.#strangers, query, LOOK_UP.strangers.maxKept) : this.#knownEntryOf(query);
    if (entry.asking === undefined && isDue(entry, query, time) && (!isStranger || this.#allowanceOfStrangers.take())) {
      entry.asking = this.#lookUp(entry, query, isStranger);
    }
    // From when the look-up began: however many deliveries need it, none of them waits longer than a second.
    if (entry.asking !== undefined) await within(LOOK_UP.waitMs - (performance.now() - entry.askedAt), entry.asking);
    return entry.credential;
  }

  /**
   * The newest credential of an agent to seal to. That there is none is taken from no look-up that began before it was needed,
   * and asked at most once a second: who waits for that has company, since all that needed it meanwhile take the same answer.
   * Undefined, too, once this has stopped.
   * @param time see `find`.
   * @param neededAt by performance.now().
   */
  async findRecipient(agent: string, time: number, neededAt: number): Promise<Credential | undefined> {
    // A timer may be early by less than what it counts in: then once more.
    while (!this.#stopped.signal.aborted) {
      const credential = await this.find({ agent }, time);
      const { askedAt, asking } = this.#knownEntryOf({ agent });
      if (holdsAt(credential, time) || askedAt >= neededAt) return credential;
      const againInMs = askedAt + LOOK_UP.recipientAgainAfterMs - performance.now();
      await (asking ?? pause(againInMs, this.#stopped.signal));
    }
    return undefined;
  }

  /** A pinned issuer vouched for it: no stranger takes its place. */
  isKnown(query: CredentialQuery): void {
    const name = nameOf(query);
    const entry = this.#strangers.get(name);
    if (entry === undefined) return;
    this.#strangers.delete(name);
    this.#known.set(name, entry);
  }

  stop(): void {
    this.#stopped.abort();
  }

  #knownEntryOf(query: CredentialQuery): Entry {
    this.isKnown(query);
    return entryIn(this.#known, query, LOOK_UP.maxKept);
  }

  async #lookUp(entry: Entry, query: CredentialQuery, isStranger: boolean): Promise<void> {
    entry.askedAt = performance.now();
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(LOOK_UP.answer.timeoutMs)]);
    const ask = () =>
      this.#concurrency.run(async () => {
        signal.throwIfAborted();
        return await askForCredential(query, this.#ask, signal);
      });
    try {
      entry.credential = await (isStranger ? this.#concurrencyOfStrangers.run(ask) : ask());
      entry.hasFailed = false;
    } catch {
      entry.hasFailed = true;
    }
    entry.asking = undefined;
  }
}

/** Neither can contain a space. */
function nameOf({ agent, keyId = "" }: CredentialQuery): string {
  return `${agent} ${keyId}`;
}

function entryIn(entries: Map<string, Entry>, query: CredentialQuery, maxKept: number): Entry {
  const name = nameOf(query);
  const entry = entries.get(name) ?? newEntry();
  entries.delete(name);
  keepNewest(entries, name, entry, maxKept);
  return entry;
}

function newEntry(): Entry {
  return { credential: undefined, hasFailed: false, askedAt: Number.NEGATIVE_INFINITY, asking: undefined };
}

function isDue({ credential, hasFailed, askedAt }: Entry, { keyId }: CredentialQuery, time: number): boolean {
  const soonAgainAfterMs = keyId === undefined ? LOOK_UP.recipientAgainAfterMs : LOOK_UP.soonAgainAfterMs;
  const againAfterMs = holdsAt(credential, time) && !hasFailed ? LOOK_UP.againAfterMs : soonAgainAfterMs;
  return performance.now() - askedAt >= againAfterMs;
}

function holdsAt(credential: Credential | undefined, time: number): boolean {
  return credential !== undefined && credential.expiresAt > time;
}
