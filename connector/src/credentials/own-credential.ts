import { backoffMs } from "../backoff.ts";
import type { Clock } from "../clock.ts";
import { RelayError } from "../errors.ts";
import { RENEWAL } from "../limits.ts";
import type { CredentialSource, CredentialWithKeys } from "../options.ts";
import type { Registration } from "../presence.ts";
import type { OwnSealingKeys } from "../sealing/own-sealing-keys.ts";
import { Signer } from "../signer.ts";
import { answerOf } from "./answer-of.ts";
import { type Credential, readCredential } from "./read-credential.ts";

export interface OwnCredentialOptions {
  readonly source: CredentialSource;
  readonly agent: string;
  readonly clock: Clock;
  /** What signs, unless a credential comes with another key. */
  readonly signer: Signer;
  readonly sealingKeys: Pick<OwnSealingKeys, "take">;
  /** True while envelopes under this key have no answer: they are sent again under it, never signed anew. */
  readonly needs: (keyId: string) => boolean;
  /** There is another one to present. */
  readonly renewed: () => void;
  /** The source failed, or gave what cannot be used; it is asked again. */
  readonly failed: (error: RelayError) => void;
}

/** A credential, and what signs under it. */
interface Held extends Registration {
  readonly credential: Credential;
}

/** The credential that this agent presents, renewed in time where its source is asked for it. */
export class OwnCredential {
  readonly #options: OwnCredentialOptions;
  /** The present one first, then those before it whose envelopes may still be on their way. */
  #held: readonly Held[] = [];
  #signer: Signer;
  #presented: string | undefined;
  #asking: Promise<boolean | undefined> | undefined;
  /** When the next is due, by this machine's clock, which the relay moves by a bounded time only. */
  #dueAt = 0;
  /** Not asked for before, by performance.now(): whatever a clock says, and though every renewal succeeds. */
  #askAt = 0;
  #takenAt = Number.NEGATIVE_INFINITY;
  #attempt = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  readonly #stopped = new AbortController();

  constructor(options: OwnCredentialOptions) {
    this.#options = options;
    this.#signer = options.signer;
  }

  /** False where the one token is all that there is. */
  get isRenewable(): boolean {
    return typeof this.#options.source === "function";
  }

  /**
   * What a connection is to be registered with, in this order: the key before the present one where its envelopes have to go
   * out again, and the present one. There is one after `start`.
   */
  registrations(): readonly Registration[] {
    const former = this.#former;
    return former !== undefined && this.#isNeeded(former) ? [former, this.#present] : [this.#present];
  }

  /** A register with it goes out. */
  presented({ credential }: Registration): void {
    this.#presented = credential?.token;
  }

  /** Whether there is another one than that of the last register; asks for it. Undefined when nobody could tell. */
  async hasAnother(): Promise<boolean | undefined> {
    if (this.#presented !== this.#present.credential.token) return true;
    return performance.now() < this.#askAt ? undefined : await this.renew();
  }

  /** The relay does not take the present one: asks for another soon. */
  refused(): void {
    if (this.isRenewable) this.#askAgainLater();
  }

  /** The one that vouches for what this agent signed with the key at that time. */
  heldAt(ts: number, keyId: string): Credential | undefined {
    const ofKey = this.#held.map(({ credential }) => credential).filter((credential) => credential.keyId === keyId);
    return ofKey.find(({ issuedAt, expiresAt }) => issuedAt <= ts && ts < expiresAt) ?? ofKey[0];
  }

  /** Rejects with `invalid_credential` when there is none that can be used, with `timeout` when the callback does not answer. */
  async start(): Promise<void> {
    await this.#take(await this.#ask());
    if (this.isRenewable) this.#renewLater();
  }

  stop(): void {
    this.#stopped.abort();
    clearTimeout(this.#timer);
  }

  /** Asks for another one now. @returns false when there is none, undefined when nobody could tell. */
  renew(): Promise<boolean | undefined> {
    this.#asking ??= this.#renew().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  get #present(): Held {
    return this.#held[0] as Held;
  }

  /** The newest under the key before the present one. */
  get #former(): Held | undefined {
    return this.#held.find(({ signer }) => signer.keyId !== this.#present.signer.keyId);
  }

  #isNeeded({ signer, credential }: Held): boolean {
    return credential.expiresAt > this.#options.clock.now() && this.#options.needs(signer.keyId);
  }

  /** Until it is asked for. */
  get #leftMs(): number {
    return Math.max(0, this.#askAt - performance.now(), this.#dueAt - this.#options.clock.boundedNow());
  }

  async #renew(): Promise<boolean | undefined> {
    try {
      const given = await this.#ask();
      if (this.#stopped.signal.aborted || given.credential === this.#present.credential.token) return false;
      if (!(await this.#take(given))) return undefined;
      this.#renewLater();
      return true;
    } catch (error) {
      if (!this.#stopped.signal.aborted) this.#options.failed(error as RelayError);
      return undefined;
    }
  }

  async #ask(): Promise<CredentialWithKeys> {
    const { source } = this.#options;
    const given = typeof source === "function" ? await answerOf(source, this.#stopped.signal) : source;
    return typeof given === "string" ? { credential: given } : given;
  }

  /** False for one that has to wait: the relay holds two keys, and would let one go whose envelopes have no answer yet. */
  async #take({ credential: token, key, sealingKeys }: CredentialWithKeys): Promise<boolean> {
    const credential = await readCredential(token);
    if (credential === undefined) throw unusable("The credential is malformed.");
    if (credential.agent !== this.#options.agent) throw unusable("The credential is of another agent.");
    const former = this.#held.length === 0 ? undefined : this.#former;
    const isThird =
      former !== undefined && ![former, this.#present].some(({ signer: { keyId } }) => keyId === credential.keyId);
    if (isThird && this.#isNeeded(former)) return false;
    const signer = key === undefined ? this.#signer : new Signer(key, this.#options.clock);
    if (key !== undefined) await signer.start();
    await signer.takeIdOf(credential);
    await this.#options.sealingKeys.take(sealingKeys, credential);
    this.#signer = signer;
    this.#held = stillOfUse([{ credential, signer }, ...this.#held]);
    return true;
  }

  /**
   * At a random point of its life, so that agents whose credentials were issued together are not renewed together. One that is
   * due at once, since a clock is wrong or a relay lies, is renewed with growing waits, never longer than its life allows.
   */
  #renewLater(): void {
    const { issuedAt, expiresAt } = this.#present.credential;
    const [now, life] = [performance.now(), expiresAt - issuedAt];
    const share = RENEWAL.earliest + (RENEWAL.latest - RENEWAL.earliest) * Math.random();
    this.#attempt = now - this.#takenAt >= 2 * RENEWAL.wait.capMs ? 0 : this.#attempt + 1;
    this.#takenAt = now;
    this.#askAt = now + Math.min(backoffMs(this.#attempt, 1, RENEWAL.wait), RENEWAL.earliest * life);
    this.#dueAt = issuedAt + share * life;
    this.#wait();
  }

  #askAgainLater(): void {
    this.#dueAt = 0;
    this.#askAt = performance.now() + backoffMs(this.#attempt, Math.random(), RENEWAL.wait);
    this.#attempt += 1;
    this.#wait();
  }

  #wait(): void {
    clearTimeout(this.#timer);
    if (this.#stopped.signal.aborted) return;
    this.#timer = setTimeout(() => void this.#look(), Math.min(this.#leftMs, RENEWAL.looksAtClockEveryMs));
  }

  async #look(): Promise<void> {
    const now = this.#options.clock.boundedNow();
    if (this.#leftMs > 0) return this.#wait();
    if (await this.renew()) return this.#options.renewed();
    // After its end nothing holds the agent on the relay: whoever reconnects asks.
    if (now < this.#present.credential.expiresAt) this.#askAgainLater();
  }
}

/** Of the held, newest first: the last two, and the last under the key before. */
function stillOfUse(held: readonly Held[]): readonly Held[] {
  const former = held.find(({ signer }) => signer.keyId !== held[0]?.signer.keyId);
  return held.filter((each, index) => index < 2 || each === former);
}

function unusable(message: string): RelayError {
  return new RelayError("invalid_credential", { message });
}
