import { expect, test } from "@jest/globals";
import type { Acceptance, Prepared } from "window/acceptance/acceptance.ts";
import { type PreparationEvent, type PreparationState, preparationStep } from "../src/session-preparation.ts";

const answer: Acceptance = { outcome: "session_closed" };
const IDLE = { kind: "idle" } as const;
const prepared: Prepared = { kind: "decision", state: "a", decidedAt: "1790000000000" };
const PREPARING = { kind: "preparing" } as const;
const PREPARED = { kind: "prepared", prepared } as const;
const REFUSED = { kind: "refused", answer } as const;
const HANDED_OVER = { kind: "handed_over" } as const;

const WAIT = { kind: "wait" };

/** The whole table: state, event, next state, effect. */
const TABLE: readonly (readonly [PreparationState, PreparationEvent, PreparationState, object])[] = [
  [IDLE, HANDED_OVER, PREPARING, { kind: "prepare" }],
  [IDLE, PREPARED, IDLE, WAIT],
  [IDLE, REFUSED, IDLE, WAIT],
  [PREPARING, HANDED_OVER, PREPARING, WAIT],
  [PREPARING, PREPARED, PREPARED, { kind: "advance" }],
  [PREPARING, REFUSED, REFUSED, { kind: "advance" }],
  [PREPARED, HANDED_OVER, IDLE, { kind: "accept", prepared }],
  [PREPARED, PREPARED, PREPARED, WAIT],
  [PREPARED, REFUSED, PREPARED, WAIT],
  [REFUSED, HANDED_OVER, IDLE, { kind: "answer", answer }],
  [REFUSED, PREPARED, REFUSED, WAIT],
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
  expect(preparationStep(state, given)).toEqual({ state: next, effect });
});
