import { backoffMs } from "../backoff.ts";
import type { Clock } from "../clock.ts";
import { RelayError } from "../errors.ts";
import { RENEWAL } from "../limits.ts";
import type { CredentialSource } from "../options.ts";
import { type Credential, readCredential } from "./read-credential.ts";

export interface OwnCredentialOptions {
  readonly source: CredentialSource;
  readonly agent: string;
  readonly clock: Clock;
  /** Rejects with a RelayError for a credential that this agent's key cannot use. */
  readonly accept: (credential: Credential) => Promise<void>;
  /** There is another one to present. */
  readonly renewed: () => void;
  /** The source failed, or gave what cannot be used; it is asked again. */
  readonly failed: (error: RelayError) => void;
}

/** The credential that this agent presents, renewed in time where its source is asked for it. */
export class OwnCredential {
  readonly #options: OwnCredentialOptions;
  /** The present one, and the one before it: envelopes that it signed may still be on their way. */
  #held: readonly Credential[] = [];
  #presented: string | undefined;
  #asking: Promise<boolean> | undefined;
  /** When it is asked for the next, by the relay's clock. */
  #dueAt = 0;
  #attempt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #hasStopped = false;

  constructor(options: OwnCredentialOptions) {
    this.#options = options;
  }

  /** False where the one token is all that there is. */
  get isRenewable(): boolean {
    return typeof this.#options.source === "function";
  }

  /** The present token, for a register. There is one after `start`. */
  present(): string {
    this.#presented = this.#present.token;
    return this.#presented;
  }

  /** Whether there is another one than that of the last register; asks for it. */
  async hasAnother(): Promise<boolean> {
    return this.#presented !== this.#present.token || (await this.renew());
  }

  /** The relay does not take the present one: asks for another soon. */
  refused(): void {
    if (this.isRenewable) this.#askAgainLater();
  }

  /** The one that vouches for what this agent signed at that time. */
  heldAt(ts: number): Credential | undefined {
    return this.#held.find(({ issuedAt, expiresAt }) => issuedAt <= ts && ts < expiresAt) ?? this.#held[0];
  }

  /** Rejects with `invalid_credential` when there is none that can be used. */
  async start(): Promise<void> {
    await this.#take(await this.#ask());
    if (this.isRenewable) this.#renewLater();
  }

  stop(): void {
    this.#hasStopped = true;
    clearTimeout(this.#timer);
  }

  /** Asks for another one now. @returns false when there is none. */
  renew(): Promise<boolean> {
    this.#asking ??= this.#renew().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  get #present(): Credential {
    return this.#held[0] as Credential;
  }

  async #renew(): Promise<boolean> {
    try {
      const token = await this.#ask();
      if (this.#hasStopped || token === this.#present.token) return false;
      await this.#take(token);
      this.#renewLater();
      return true;
    } catch (error) {
      this.#options.failed(error as RelayError);
      return false;
    }
  }

  async #ask(): Promise<string> {
    const { source } = this.#options;
    try {
      return typeof source === "function" ? await source() : source;
    } catch (cause) {
      throw unusable("The callback that gives the credential failed; see cause.", cause);
    }
  }

  async #take(token: unknown): Promise<void> {
    const credential = await readCredential(token);
    if (credential === undefined) throw unusable("The credential is malformed.");
    if (credential.agent !== this.#options.agent) throw unusable("The credential is of another agent.");
    await this.#options.accept(credential);
    this.#held = [credential, ...this.#held].slice(0, 2);
  }

  /** At a random point of its life, so that agents whose credentials were issued together are not renewed together. */
  #renewLater(): void {
    const { issuedAt, expiresAt } = this.#present;
    const share = RENEWAL.earliest + (RENEWAL.latest - RENEWAL.earliest) * Math.random();
    this.#attempt = 0;
    this.#dueAt = issuedAt + share * (expiresAt - issuedAt);
    this.#wait();
  }

  #askAgainLater(): void {
    this.#dueAt = this.#options.clock.now() + backoffMs(this.#attempt, Math.random(), RENEWAL.wait);
    this.#attempt += 1;
    this.#wait();
  }

  #wait(): void {
    clearTimeout(this.#timer);
    if (this.#hasStopped) return;
    const ms = Math.max(0, this.#dueAt - this.#options.clock.now());
    this.#timer = setTimeout(() => void this.#look(), Math.min(ms, RENEWAL.looksAtClockEveryMs));
  }

  async #look(): Promise<void> {
    const now = this.#options.clock.now();
    if (now < this.#dueAt) return this.#wait();
    if (await this.renew()) return this.#options.renewed();
    // After its end nothing holds the agent on the relay: whoever reconnects asks.
    if (now < this.#present.expiresAt) this.#askAgainLater();
  }
}

function unusable(message: string, cause?: unknown): RelayError {
  return new RelayError("invalid_credential", { message, cause });
}
