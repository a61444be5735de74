import type { AcceptanceItem } from "relay-window/acceptance/acceptance.ts";
import type { Acceptor } from "relay-window/acceptance/acceptor.ts";

/** For so long a decision is taken to its requester again. */
const REPEATED_MS = 30_000;
export const DECISION_REPEAT_MS = 1000;
/** With payloads as long as they may be these hold 32 MB; of more than that their senders alone repeat them. */
const MOST = 1000;

/** A session decision that is in effect, on its way to acceptance. */
export type PreparedItem = Omit<AcceptanceItem, "done">;

interface Repeat {
  readonly item: PreparedItem;
  /** Monotonic ms. */
  readonly endsAt: number;
  isUnderWay: boolean;
}

/**
 * Decisions that are in effect, and whose last step had no answer: it is done again until it has one, whether their sender is still
 * there or not, so that the requester gets the decision, or it is kept for it. The guard knows what was accepted.
 * Source: docs/redis.md#sessions.
 */
export class DecisionRepeats {
  readonly #acceptor: Pick<Acceptor, "accept">;
  /** By text. */
  readonly #repeats = new Map<string, Repeat>();

  constructor(acceptor: Pick<Acceptor, "accept">) {
    this.#acceptor = acceptor;
  }

  get size(): number {
    return this.#repeats.size;
  }

  /** @param now monotonic ms. */
  keep(item: PreparedItem, now: number): void {
    if (this.#repeats.size >= MOST) return;
    this.#repeats.set(item.text, { item, endsAt: now + REPEATED_MS, isUnderWay: false });
  }

  /** Does the last step of each again. @param now monotonic ms. */
  flush(now: number): void {
    for (const [text, repeat] of this.#repeats) {
      if (repeat.isUnderWay) continue;
      if (now >= repeat.endsAt) this.#repeats.delete(text);
      else this.#repeat(text, repeat);
    }
  }

  #repeat(text: string, repeat: Repeat): void {
    repeat.isUnderWay = true;
    const done: AcceptanceItem["done"] = ({ outcome }) => {
      repeat.isUnderWay = false;
      if (outcome !== "unavailable" && this.#repeats.get(text) === repeat) this.#repeats.delete(text);
    };
    this.#acceptor.accept({ ...repeat.item, done });
  }
}
