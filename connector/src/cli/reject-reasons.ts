import { setTimeout as delay } from "node:timers/promises";
import { textOf } from "../frames.ts";
import type { Delivery } from "../types.ts";

/** A look-up of the session may overtake the delivery of its decision. */
const DELIVERED_WITHIN_MS = 1000;

/** Why an agent rejects sessions. The relay keeps no contents: the delivery of the reject alone says it. */
export class RejectReasons {
  readonly #target: string;
  /** By session; undefined where the reject gives none. */
  readonly #reasons = new Map<string, string | undefined>();

  constructor(target: string) {
    this.#target = target;
  }

  readonly heard = ({ type, from, sessionId, payload }: Delivery): void => {
    if (type === "session.reject" && from === this.#target && sessionId !== undefined)
      this.#reasons.set(sessionId, textOf(payload.reason));
  };

  /** Of a session that is rejected; undefined when the reject gives none, or was delivered elsewhere. */
  async of(sessionId: string, signal: AbortSignal): Promise<string | undefined> {
    if (!this.#reasons.has(sessionId)) await delay(DELIVERED_WITHIN_MS, undefined, { signal }).catch(() => {});
    return this.#reasons.get(sessionId);
  }
}
