import { LOOK_UP } from "../limits.ts";
import { within } from "../within.ts";
import { Concurrency } from "./concurrency.ts";
import { askForCredential, type CredentialQuery, type Fetch } from "./credential-source.ts";
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

/** Credentials of other agents, looked up at the relay when they are needed. What is found is checked by nobody yet. */
export class SenderCredentials {
  readonly #base: string;
  readonly #fetch: Fetch;
  /** The one that was needed longest ago comes first. */
  readonly #entries = new Map<string, Entry>();
  readonly #concurrency = new Concurrency(LOOK_UP.atOnce);
  readonly #stopped = new AbortController();

  /** @param base address of the relay (http, https), without a slash at its end. */
  constructor(base: string, fetch: Fetch) {
    this.#base = base;
    this.#fetch = fetch;
  }

  /**
   * The credential of a key of an agent, or without `keyId` the newest of any; undefined when the relay has none, or does
   * not say it within a second. Never rejects.
   * @param time at which it is to hold, epoch milliseconds: one that had ended by then is looked up again.
   */
  async find(query: CredentialQuery, time: number): Promise<Credential | undefined> {
    const entry = this.#entryOf(query);
    if (entry.asking === undefined && isDue(entry, time)) entry.asking = this.#ask(entry, query);
    // From when the look-up began: however many deliveries need it, none of them waits longer than a second.
    if (entry.asking !== undefined) await within(LOOK_UP.waitMs - (performance.now() - entry.askedAt), entry.asking);
    return entry.credential;
  }

  stop(): void {
    this.#stopped.abort();
  }

  #entryOf({ agent, keyId = "" }: CredentialQuery): Entry {
    // Neither can contain a space.
    const name = `${agent} ${keyId}`;
    const entry = this.#entries.get(name) ?? newEntry();
    this.#entries.delete(name);
    this.#entries.set(name, entry);
    const [oldest] = this.#entries.keys();
    if (this.#entries.size > LOOK_UP.maxKept) this.#entries.delete(oldest as string);
    return entry;
  }

  async #ask(entry: Entry, query: CredentialQuery): Promise<void> {
    entry.askedAt = performance.now();
    const signal = AbortSignal.any([this.#stopped.signal, AbortSignal.timeout(LOOK_UP.timeoutMs)]);
    try {
      entry.credential = await this.#concurrency.run(async () => {
        signal.throwIfAborted();
        return await askForCredential(this.#base, query, this.#fetch, signal);
      });
      entry.hasFailed = false;
    } catch {
      entry.hasFailed = true;
    }
    entry.asking = undefined;
  }
}

function newEntry(): Entry {
  return { credential: undefined, hasFailed: false, askedAt: Number.NEGATIVE_INFINITY, asking: undefined };
}

function isDue({ credential, hasFailed, askedAt }: Entry, time: number): boolean {
  const hasEnded = credential !== undefined && credential.expiresAt <= time;
  const againAfterMs = hasFailed || hasEnded ? LOOK_UP.soonAgainAfterMs : LOOK_UP.againAfterMs;
  return performance.now() - askedAt >= againAfterMs;
}
