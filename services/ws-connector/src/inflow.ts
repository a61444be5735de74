import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";
import type { LimitName } from "runtime/metrics/catalogue.ts";
import { Pauses } from "./pauses.ts";
import { type Principal, type PrincipalRates, principalOfKey } from "./principal-rates.ts";
import type { TokenBuckets } from "./token-bucket.ts";
import type { Turns, TurnTaker } from "./turns.ts";

/** What is the same for all connections of a pod. */
export interface InflowContext {
  /** Of envelopes, and as many pings, of a connection. */
  readonly envelopes: TokenBuckets;
  readonly bytes: TokenBuckets;
  readonly principals: PrincipalRates;
  /** Of bytes: large envelopes cost a pod far more than small ones. */
  readonly principalBytes: PrincipalRates;
  readonly turns: Turns;
  /** The frame for a client that sends too much. */
  readonly slowDownNotice: string;
}

/** Why its inflow keeps a connection from being read: a text waits for its turn, or a rate is used up. */
export type InflowPause = "turn" | "rate";

/** The connection, as far as its inflow needs it. */
export interface InflowOwner {
  readonly isClosing: boolean;
  /** Of its client address. */
  readonly addressCounts: object;
  /** Of the first valid envelope. */
  readonly keyId: string | undefined;
  takeIn(text: string): void;
  /** Returns true when it was not paused for this reason before. */
  pause(reason: InflowPause): boolean;
  resume(reason: InflowPause): void;
  send(text: string): void;
  limitReached(limit: LimitName): void;
  /** Ends the connection because of a limit. */
  closeFor(limit: LimitName): void;
}

/**
 * What one connection sends, on its way from the socket to intake. Over a rate the connection is not read until its next
 * token: nothing is dropped or refused for it. Before the first valid envelope one text is taken in at a time, in turn with
 * other unregistered connections. ws hands over all frames of a chunk, also when the first of them pauses the socket: the
 * others wait here, in their order, and are no more than a chunk holds. Source: docs/protocol.md#limits.
 */
export class Inflow implements TurnTaker {
  readonly #owner: InflowOwner;
  readonly #context: InflowContext;
  /** When each bucket is full again, monotonic ms. */
  #envelopesFullAt = 0;
  #pingsFullAt = 0;
  #bytesFullAt = 0;
  #isRegistered = false;
  /** Before the first valid envelope. */
  #frames = 0;
  #bytes = 0;
  /** Texts that were read and not taken in; undefined while none has to wait. */
  #texts: string[] | undefined;
  /** True when the tokens of the first of them are taken. */
  #isPaid = false;
  /** True from the turn of an unregistered connection until its text is answered. */
  #awaitsAnswer = false;
  #keyId: string | undefined;
  #principal: Principal | undefined;
  /** Undefined until the first. */
  #pauses: Pauses | undefined;

  constructor(owner: InflowOwner, context: InflowContext) {
    this.#owner = owner;
    this.#context = context;
  }

  get address(): object {
    return this.#owner.addressCounts;
  }

  /** True while a text waits to be taken in. */
  get hasWaiting(): boolean {
    return this.#texts !== undefined && this.#texts.length > 0;
  }

  /** True while it is not known whether a text that came in is valid. */
  get isUndecided(): boolean {
    return this.#awaitsAnswer || this.hasWaiting;
  }

  text(text: string): void {
    if (this.#texts !== undefined) {
      this.#texts.push(text);
    } else if (!this.#isRegistered) {
      this.#texts = [text];
      this.#owner.pause("turn");
      this.#context.turns.join(this);
    } else if (this.#takeToken()) {
      this.#owner.takeIn(text);
    } else {
      this.#texts = [text];
      this.#isPaid = true;
    }
  }

  /** A chunk came from the socket; its texts have been handed over. */
  bytes(count: number): void {
    if (!this.#isRegistered) {
      this.#bytes += count;
      if (this.#bytes > CONNECTION_LIMITS.unregisteredBytes) this.#owner.closeFor("unregistered_intake");
      return;
    }
    const { bytes, principalBytes } = this.#context;
    const now = performance.now();
    this.#bytesFullAt = bytes.take(this.#bytesFullAt, now, count);
    const waitMs = bytes.wait(this.#bytesFullAt, now);
    const principal = this.#principalNow();
    const sharedWaitMs = principal === undefined ? 0 : principalBytes.take(principal, now, count);
    if (waitMs === 0 && sharedWaitMs === 0) return;
    this.#pause(Math.max(waitMs, sharedWaitMs), sharedWaitMs > waitMs ? "key_bytes" : "bytes");
  }

  /** Each ping costs a pong. A client does not know when it is not read, so that pings have tokens of their own. */
  ping(): void {
    if (this.#owner.isClosing) return;
    if (!this.#isRegistered) {
      this.#countFrame();
      return;
    }
    const { envelopes } = this.#context;
    const now = performance.now();
    if (envelopes.wait(this.#pingsFullAt, now) > 0) this.#owner.closeFor("pings");
    else this.#pingsFullAt = envelopes.take(this.#pingsFullAt, now);
  }

  pong(): void {
    if (!this.#isRegistered && !this.#owner.isClosing) this.#countFrame();
  }

  /** The first valid envelope came in. */
  registered(): void {
    this.#isRegistered = true;
  }

  /** Nothing of the connection is in flight. What waits goes on when the caller, which is still at the last text, has ended. */
  answered(): void {
    if (!this.#awaitsAnswer) return;
    this.#awaitsAnswer = false;
    process.nextTick(() => this.#advance());
  }

  takeTurn(): void {
    if (!this.#countFrame()) return;
    this.#awaitsAnswer = true;
    this.#owner.takeIn((this.#texts as string[]).shift() as string);
  }

  stop(): void {
    this.#pauses?.stop();
    this.#texts = undefined;
    this.#context.turns.leave(this);
  }

  /** Takes in what waits, as far as there are tokens; then the socket is read again. */
  #advance(): void {
    while (this.hasWaiting) {
      if (this.#owner.isClosing) return;
      if (!this.#isRegistered) {
        this.#context.turns.join(this);
        return;
      }
      if (!this.#isPaid && !this.#takeToken()) {
        this.#isPaid = true;
        return;
      }
      this.#isPaid = false;
      this.#owner.takeIn((this.#texts as string[]).shift() as string);
    }
    this.#texts = undefined;
    this.#owner.resume("turn");
    this.#owner.resume("rate");
  }

  /**
   * Takes a token of the connection and one of its principal. Returns false when they are taken in advance; the pause that
   * begins then ends when they may be used.
   */
  #takeToken(): boolean {
    const { envelopes, principals } = this.#context;
    const now = performance.now();
    const waitMs = envelopes.wait(this.#envelopesFullAt, now);
    this.#envelopesFullAt = envelopes.take(this.#envelopesFullAt, now);
    const principal = this.#principalNow();
    const sharedWaitMs = principal === undefined ? 0 : principals.take(principal, now);
    if (waitMs === 0 && sharedWaitMs === 0) return true;
    this.#pause(Math.max(waitMs, sharedWaitMs), sharedWaitMs > waitMs ? "key_envelopes" : "envelopes");
    return false;
  }

  #principalNow(): Principal | undefined {
    const { keyId } = this.#owner;
    if (keyId !== this.#keyId) {
      this.#keyId = keyId;
      this.#principal = keyId === undefined ? undefined : principalOfKey(keyId);
    }
    return this.#principal;
  }

  #pause(waitMs: number, limit: LimitName): void {
    if (this.#owner.pause("rate")) this.#owner.limitReached(limit);
    this.#pauses ??= new Pauses((isSlow) => {
      if (isSlow) this.#owner.send(this.#context.slowDownNotice);
      this.#advance();
    });
    this.#pauses.begin(waitMs);
  }

  /** False when the frame is one too many; the connection is closed then. */
  #countFrame(): boolean {
    this.#frames += 1;
    if (this.#frames <= CONNECTION_LIMITS.unregisteredFrames) return true;
    this.#owner.closeFor("unregistered_intake");
    return false;
  }
}
