import type { Acceptance, AcceptanceItem, Prepared } from "relay-window/acceptance/acceptance.ts";
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

  get size(): number {
    return this.#repeats.size;
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

/**
 * A session.approve or session.reject is prepared before its acceptance: it takes effect in the session's partition.
 * Over several partitions a session.request is also prepared: the other partitions count it. Until then the
 * connection's queue waits, so that nothing overtakes the envelope. Once asked, the session's partition may have
 * decided. Then the acceptance follows even if the connection closes, because the requester must hear of a decision in
 * effect. Pure. Source: docs/protocol.md#sessions.
 */
export type PreparationState =
  /** The head of the queue needs no preparation, or its preparation has not begun. */
  | { readonly kind: "idle" }
  /** The preparation has no answer yet. */
  | { readonly kind: "preparing" }
  | Done
  | Refused;

export type PreparationEvent =
  /** The queue hands over the envelope at its head. It may hand it over again while the envelope waits there. */
  { readonly kind: "handed_over" } | Done | Refused;

interface Done {
  readonly kind: "prepared";
  readonly prepared: Prepared;
}

/** The answer does not say that a decision is in effect, or a count had no answer. */
interface Refused {
  readonly kind: "refused";
  readonly answer: Acceptance;
}

export type PreparationEffect =
  | { readonly kind: "wait" }
  /** Asks for the preparation. */
  | { readonly kind: "prepare" }
  /** Makes the queue hand over its head again. */
  | { readonly kind: "advance" }
  /** Goes on to acceptance. */
  | { readonly kind: "accept"; readonly prepared: Prepared }
  /** Answers the client with the refusal. */
  | { readonly kind: "answer"; readonly answer: Acceptance };

export interface PreparationStep {
  readonly state: PreparationState;
  readonly effect: PreparationEffect;
}

export const IDLE: PreparationState = { kind: "idle" };
const PREPARING: PreparationState = { kind: "preparing" };

/** State × event. The preparation is asked for once, so only `preparing` gets an answer. */
// biome-ignore format: a table
const TRANSITIONS: Table = {
  idle:      { handed_over: ask,      prepared: stay, refused: stay },
  preparing: { handed_over: stay,     prepared: keep, refused: keep },
  prepared:  { handed_over: complete, prepared: stay, refused: stay },
  refused:   { handed_over: reply,    prepared: stay, refused: stay },
};

export function preparationStep(state: PreparationState, event: PreparationEvent): PreparationStep {
  const cell = TRANSITIONS[state.kind][event.kind] as (
    state: PreparationState,
    event: PreparationEvent,
  ) => PreparationStep;
  return cell(state, event);
}

type Table = {
  readonly [State in PreparationState["kind"]]: {
    readonly [Event in PreparationEvent["kind"]]: (
      state: Extract<PreparationState, { readonly kind: State }>,
      event: Extract<PreparationEvent, { readonly kind: Event }>,
    ) => PreparationStep;
  };
};

function stay(state: PreparationState): PreparationStep {
  return { state, effect: { kind: "wait" } };
}

function ask(): PreparationStep {
  return { state: PREPARING, effect: { kind: "prepare" } };
}

function keep(_: PreparationState, answer: Done | Refused): PreparationStep {
  return { state: answer, effect: { kind: "advance" } };
}

function complete({ prepared }: Done): PreparationStep {
  return { state: IDLE, effect: { kind: "accept", prepared } };
}

function reply({ answer }: Refused): PreparationStep {
  return { state: IDLE, effect: { kind: "answer", answer } };
}
