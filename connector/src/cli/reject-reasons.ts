import { textOf } from "../frames.ts";
import { keepNewest } from "../keep-newest.ts";
import type { Delivery } from "../types.ts";

/** A look-up of the session may overtake the delivery of its decision; nobody waits longer for one that went elsewhere. */
const DELIVERED_WITHIN_MS = 1000;
/** A target may reject other sessions meanwhile, of other processes of this agent. */
const MAX_KEPT = 100;

/** Why an agent rejects sessions. The relay keeps no contents: the delivery of the reject alone says it. */
export class RejectReasons {
  readonly #target: string;
  /** By session, of rejects that were delivered or are waited for. */
  readonly #reasons = new Map<string, PromiseWithResolvers<string | undefined>>();

  constructor(target: string) {
    this.#target = target;
  }

  readonly heard = ({ type, from, sessionId, payload }: Delivery): void => {
    if (type === "session.reject" && from === this.#target && sessionId !== undefined)
      this.#reasonFor(sessionId).resolve(textOf(payload.reason));
  };

  /** Of a session that is rejected, once its reject is delivered; undefined when it gives none, or was delivered elsewhere. */
  async of(sessionId: string, signal: AbortSignal): Promise<string | undefined> {
    const { promise, resolve } = this.#reasonFor(sessionId);
    const giveUp = () => resolve(undefined);
    const timer = setTimeout(giveUp, signal.aborted ? 0 : DELIVERED_WITHIN_MS);
    signal.addEventListener("abort", giveUp, { once: true });
    const reason = await promise;
    clearTimeout(timer);
    signal.removeEventListener("abort", giveUp);
    return reason;
  }

  #reasonFor(sessionId: string): PromiseWithResolvers<string | undefined> {
    const known = this.#reasons.get(sessionId) ?? Promise.withResolvers<string | undefined>();
    keepNewest(this.#reasons, sessionId, known, MAX_KEPT);
    return known;
  }
}
