import type { Frame } from "../../support/agent.ts";

/**
 * Session requests that an agent has not decided. Each session is decided once: over the loss of a window a request may
 * be delivered again, as the same session, and a second decision of it would rightly be refused.
 */
export class OpenRequests {
  readonly #waiting: Frame[] = [];
  readonly #known = new Set<string>();

  /** @param delivery of a session.request. */
  add(delivery: Frame): void {
    if (this.#known.has(delivery.session_id)) return;
    this.#known.add(delivery.session_id);
    this.#waiting.push(delivery);
  }

  /** The delivery that has waited longest, to be decided now. */
  next(): Frame | undefined {
    return this.#waiting.shift();
  }
}
