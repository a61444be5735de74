import { expect, test } from "@jest/globals";
import type { Acceptance } from "window/acceptance/acceptance.ts";
import { type DecisionEvent, type DecisionState, decisionStep } from "../src/session-decision.ts";

const answer: Acceptance = { outcome: "session_closed" };
const IDLE = { kind: "idle" } as const;
const DECIDING = { kind: "deciding" } as const;
const DECIDED = { kind: "decided" } as const;
const REFUSED = { kind: "refused", answer } as const;
const HANDED_OVER = { kind: "handed_over" } as const;

const WAIT = { kind: "wait" };

/** The whole table: state, event, next state, effect. */
const TABLE: readonly (readonly [DecisionState, DecisionEvent, DecisionState, object])[] = [
  [IDLE, HANDED_OVER, DECIDING, { kind: "decide" }],
  [IDLE, DECIDED, IDLE, WAIT],
  [IDLE, REFUSED, IDLE, WAIT],
  [DECIDING, HANDED_OVER, DECIDING, WAIT],
  [DECIDING, DECIDED, DECIDED, { kind: "advance" }],
  [DECIDING, REFUSED, REFUSED, { kind: "advance" }],
  [DECIDED, HANDED_OVER, IDLE, { kind: "accept" }],
  [DECIDED, DECIDED, DECIDED, WAIT],
  [DECIDED, REFUSED, DECIDED, WAIT],
  [REFUSED, HANDED_OVER, IDLE, { kind: "answer", answer }],
  [REFUSED, DECIDED, REFUSED, WAIT],
  [REFUSED, REFUSED, REFUSED, WAIT],
];

test.each(
  TABLE.map(([state, event, next, effect]) => ({
    from: state.kind,
    event: event.kind,
    state,
    given: event,
    next,
    effect,
  })),
)("$from, $event", ({ state, given, next, effect }) => {
  expect(decisionStep(state, given)).toEqual({ state: next, effect });
});
