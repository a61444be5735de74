import type { AcceptanceItem } from "relay-window/acceptance/acceptance.ts";
import type { Acceptor } from "relay-window/acceptance/acceptor.ts";

/** How long a pod repeats the last step of a decision. */
const REPEATED_MS = 30_000;
export const DECISION_REPEAT_MS = 1000;
/**
 * Most decisions that a pod repeats. They hold 32 MB if payloads have their maximum size. Only the senders repeat
 * further decisions.
 */
const MOST = 1000;

/** A session decision in effect, on its way to acceptance. */
export type PreparedItem = Omit<AcceptanceItem, "done">;

interface Repeat {
  readonly item: PreparedItem;
  /** Monotonic ms. */
  readonly endsAt: number;
  isUnderWay: boolean;
}

/**
 * Decisions in effect whose last step had no answer. The pod repeats that step until it has an answer, even if the
 * sender is gone. So the requester gets the decision, or Redis keeps it for the requester. The guard knows which
 * decisions were accepted. Source: docs/redis.md#sessions.
 */
export class DecisionRepeats {
  readonly #acceptor: Pick<Acceptor, "accept">;
  /** By canonical text. */
  readonly #repeats = new Map<string, Repeat>();

  constructor(acceptor: Pick<Acceptor, "accept">) {
    this.#acceptor = acceptor;
  }

  /** @param now monotonic ms. */
  keep(item: PreparedItem, now: number): void {
    if (this.#repeats.size >= MOST) return;
    this.#repeats.set(item.text, { item, endsAt: now + REPEATED_MS, isUnderWay: false });
  }

  /** Repeats the last step of each decision. @param now monotonic ms. */
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
