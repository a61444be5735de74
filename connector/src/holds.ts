import { jitteredMs } from "./backoff.ts";
import type { ErrorDetails } from "./errors.ts";
import { type HoldCode, type PendingSend, Scope, type Scopes } from "./pending-sends.ts";

/** No target, and no kind. */
const ALL = "";

/** What the relay refused for the moment: each refusal holds what it is about, and nothing else. Source: docs/protocol.md#sends. */
export class Holds {
  readonly #over: (scope: string) => void;
  /** By kind, by target, and all of the agent. Each has a send, or a hold whose time runs. */
  readonly #scopes = new Map<string, Scope>();

  /** @param over the time of the hold of this scope is over. */
  constructor(over: (scope: string) => void) {
    this.#over = over;
  }

  /** For a send that is added next. */
  scopesOf({ type, to }: { readonly type: string; readonly to: string }): Scopes {
    return [this.#scope(ALL), this.#scope(kindOf(type)), this.#scope(to)];
  }

  /** @returns the sends under it whose calls end before it does. */
  begin({ scopes }: PendingSend, code: HoldCode, details: ErrorDetails, retryAfterMs: number): PendingSend[] {
    const [all, kind, target] = scopes;
    const scope = { unavailable: target, rate_limited: kind, not_registered: all }[code];
    clearTimeout(scope.hold?.timer);
    const ms = jitteredMs(retryAfterMs);
    const endsAt = performance.now() + ms;
    scope.hold = { code, details, endsAt, timer: setTimeout(() => this.#timeIsOver(scope), ms) };
    return scope.sends.takeWhile(({ deadline }) => deadline <= endsAt);
  }

  /** The send was answered: what held it, and let it out again, is past. */
  answered({ scopes }: PendingSend): void {
    for (const scope of scopes) if (scope.hold?.timer === undefined) scope.hold = undefined;
  }

  /** The send was removed: what nothing else waits under is past with its time. */
  forgetUnused(scopes: Scopes): void {
    for (const scope of scopes) this.#forgetIfUnused(scope);
  }

  clear(): void {
    for (const scope of this.#scopes.values()) {
      clearTimeout(scope.hold?.timer);
      scope.hold = undefined;
      this.#forgetIfUnused(scope);
    }
  }

  #scope(name: string): Scope {
    const scope = this.#scopes.get(name) ?? new Scope(name);
    this.#scopes.set(name, scope);
    return scope;
  }

  #timeIsOver(scope: Scope): void {
    if (scope.hold !== undefined) scope.hold.timer = undefined;
    this.#forgetIfUnused(scope);
    this.#over(scope.name);
  }

  #forgetIfUnused({ name, sends, hold }: Scope): void {
    if (sends.items.length === 0 && hold?.timer === undefined) this.#scopes.delete(name);
  }
}

/** The relay may limit each type of a session's envelopes by itself; messages are of one kind, whatever they are called. */
function kindOf(type: string): string {
  return type.startsWith("message.") ? "message.*" : type;
}
