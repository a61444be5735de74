import { jitteredMs } from "./backoff.ts";
import type { ErrorDetails } from "./errors.ts";

/** Why sends go out again later. */
export type HoldCode = "unavailable" | "rate_limited" | "not_registered";

/** While its time runs, nothing goes out under it; then one envelope at a time, until one is answered otherwise. */
export interface Hold {
  readonly code: HoldCode;
  /** What the relay said. */
  readonly details: ErrorDetails;
  /** By performance.now(). */
  readonly endsAt: number;
  /** Undefined once its time is over. */
  timer: ReturnType<typeof setTimeout> | undefined;
}

/** Of a send: what a refusal may hold. */
interface Held {
  readonly type: string;
  readonly to: string;
}

/** No target, and no kind. */
const ALL = "";

/** What the relay refused for the moment: each refusal holds what it is about, and nothing else. Source: docs/protocol.md#sends. */
export class Holds {
  readonly #isNeeded: (hold: Hold) => boolean;
  readonly #over: () => void;
  /** By kind, by target, and all of the agent. */
  readonly #holds = new Map<string, Hold>();

  /**
   * @param isNeeded whether something waits under it.
   * @param over the time of one is over.
   */
  constructor(isNeeded: (hold: Hold) => boolean, over: () => void) {
    this.#isNeeded = isNeeded;
    this.#over = over;
  }

  get isEmpty(): boolean {
    return this.#holds.size === 0;
  }

  /** Those that a send is under. */
  of(send: Held): readonly Hold[] {
    if (this.isEmpty) return [];
    return scopesOf(send).flatMap((scope) => this.#holds.get(scope) ?? []);
  }

  begin(send: Held, code: HoldCode, details: ErrorDetails, retryAfterMs: number): void {
    const scope = { unavailable: send.to, rate_limited: kindOf(send.type), not_registered: ALL }[code];
    this.#end(scope);
    const ms = jitteredMs(retryAfterMs);
    const timer = setTimeout(() => this.#timeIsOver(scope), ms);
    this.#holds.set(scope, { code, details, endsAt: performance.now() + ms, timer });
  }

  /** The send was answered: what held it, and let it out again, is past. */
  answered(send: Held): void {
    for (const scope of scopesOf(send)) {
      if (this.#holds.get(scope)?.timer === undefined) this.#holds.delete(scope);
    }
  }

  /** The send ended without an answer: what nothing else waits under is past with its time. */
  givenUp(send: Held): void {
    for (const scope of scopesOf(send)) {
      const hold = this.#holds.get(scope);
      if (hold !== undefined && hold.timer === undefined) this.#dropUnneeded(scope, hold);
    }
  }

  /** Whether the time of one ends no sooner. @param time by performance.now(). */
  outlast(time: number): boolean {
    for (const { timer, endsAt } of this.#holds.values()) if (timer !== undefined && endsAt >= time) return true;
    return false;
  }

  clear(): void {
    for (const scope of this.#holds.keys()) this.#end(scope);
  }

  #timeIsOver(scope: string): void {
    const hold = this.#holds.get(scope) as Hold;
    hold.timer = undefined;
    this.#dropUnneeded(scope, hold);
    this.#over();
  }

  #dropUnneeded(scope: string, hold: Hold): void {
    if (!this.#isNeeded(hold)) this.#holds.delete(scope);
  }

  #end(scope: string): void {
    clearTimeout(this.#holds.get(scope)?.timer);
    this.#holds.delete(scope);
  }
}

function scopesOf({ type, to }: Held): readonly string[] {
  return [ALL, kindOf(type), to];
}

/** The relay may limit each type of a session's envelopes by itself; messages are of one kind, whatever they are called. */
function kindOf(type: string): string {
  return type.startsWith("message.") ? "message.*" : type;
}
