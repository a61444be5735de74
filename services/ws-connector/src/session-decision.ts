import type { Acceptance } from "window/acceptance/acceptance.ts";

/**
 * session.approve and session.reject take two steps: the session's partition decides, then the requester's partition
 * accepts the envelope and delivers it. A connection's queue waits between the two, so that nothing overtakes the
 * decision. Once asked, the session's partition may have decided: the second step follows even if the connection closes
 * meanwhile, for the requester must hear of a decision in effect. Pure. Source: docs/protocol.md#sessions.
 */
export type DecisionState =
  /** None is at the head of the queue, or the session's partition has not been asked yet. */
  | { readonly kind: "idle" }
  /** The session's partition has not answered yet. */
  | { readonly kind: "deciding" }
  | { readonly kind: "decided" }
  | Refused;

export type DecisionEvent =
  /** The queue hands over the decision at its head; it may do so again while the decision waits there. */
  { readonly kind: "handed_over" } | { readonly kind: "decided" } | Refused;

/** The session's partition answered, and the decision is not in effect as far as it knows. */
interface Refused {
  readonly kind: "refused";
  readonly answer: Acceptance;
}

export type DecisionEffect =
  | { readonly kind: "wait" }
  /** Asks the session's partition. */
  | { readonly kind: "decide" }
  /** Lets the queue hand over its head again. */
  | { readonly kind: "advance" }
  /** Goes on to acceptance. */
  | { readonly kind: "accept" }
  /** Answers the client with the refusal. */
  | { readonly kind: "answer"; readonly answer: Acceptance };

export interface DecisionStep {
  readonly state: DecisionState;
  readonly effect: DecisionEffect;
}

export const IDLE: DecisionState = { kind: "idle" };
const DECIDING: DecisionState = { kind: "deciding" };
const DECIDED: DecisionState = { kind: "decided" };

/** State × event. The session's partition is asked once, in `deciding`: no other state gets its answer. */
// biome-ignore format: a table
const TRANSITIONS: Table = {
  idle:     { handed_over: ask,      decided: stay,  refused: stay },
  deciding: { handed_over: stay,     decided: allow, refused: refuse },
  decided:  { handed_over: complete, decided: stay,  refused: stay },
  refused:  { handed_over: reply,    decided: stay,  refused: stay },
};

export function decisionStep(state: DecisionState, event: DecisionEvent): DecisionStep {
  const cell = TRANSITIONS[state.kind][event.kind] as (state: DecisionState, event: DecisionEvent) => DecisionStep;
  return cell(state, event);
}

type Table = {
  readonly [State in DecisionState["kind"]]: {
    readonly [Event in DecisionEvent["kind"]]: (
      state: Extract<DecisionState, { readonly kind: State }>,
      event: Extract<DecisionEvent, { readonly kind: Event }>,
    ) => DecisionStep;
  };
};

function stay(state: DecisionState): DecisionStep {
  return { state, effect: { kind: "wait" } };
}

function ask(): DecisionStep {
  return { state: DECIDING, effect: { kind: "decide" } };
}

function allow(): DecisionStep {
  return { state: DECIDED, effect: { kind: "advance" } };
}

function refuse(_: DecisionState, refused: Refused): DecisionStep {
  return { state: refused, effect: { kind: "advance" } };
}

function complete(): DecisionStep {
  return { state: IDLE, effect: { kind: "accept" } };
}

function reply({ answer }: Refused): DecisionStep {
  return { state: IDLE, effect: { kind: "answer", answer } };
}
