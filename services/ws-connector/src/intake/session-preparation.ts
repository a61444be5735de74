import type { Acceptance, Prepared } from "relay-window/acceptance/acceptance.ts";

/**
 * A session.approve, a session.reject and, over several partitions, a session.request are prepared before their acceptance: a
 * decision takes effect in the session's partition, a request is counted in the others. A connection's queue waits
 * meanwhile, so that nothing overtakes the envelope. Once asked, the session's partition may have decided: the acceptance
 * follows even if the connection closes meanwhile, for the requester must hear of a decision in effect. Pure.
 * Source: docs/protocol.md#sessions.
 */
export type PreparationState =
  /** None is at the head of the queue, or nothing has been asked yet. */
  | { readonly kind: "idle" }
  /** No answer yet. */
  | { readonly kind: "preparing" }
  | Done
  | Refused;

export type PreparationEvent =
  /** The queue hands over the envelope at its head; it may do so again while the envelope waits there. */
  { readonly kind: "handed_over" } | Done | Refused;

interface Done {
  readonly kind: "prepared";
  readonly prepared: Prepared;
}

/** A decision is not in effect as far as its answer tells, or a count had none. */
interface Refused {
  readonly kind: "refused";
  readonly answer: Acceptance;
}

export type PreparationEffect =
  | { readonly kind: "wait" }
  /** Asks for the preparation. */
  | { readonly kind: "prepare" }
  /** Lets the queue hand over its head again. */
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

/** State × event. It is asked for once, in `preparing`: no other state gets its answer. */
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
