import { z } from "zod";
import { WINDOW_LIMITS } from "../limits.ts";
import { STAGES, Stage, type StageName } from "./activation-funnel.ts";
import { Privacy } from "./common.ts";
import { Completeness } from "./window.ts";

/** GET /api/ops/session-journeys: the actions of anonymous visitors, in order, and where they stopped. */

/** The stage that an action belongs to, by operation id; all others are reads and belong to discovery. */
export const STAGE_OF_ACTION: Readonly<Record<string, StageName>> = {
  checkOnline: "connector_onboarding",
  selfTest: "connector_onboarding",
  sendMessage: "message_delivery",
  requestSession: "session_negotiation",
  readSession: "session_negotiation",
  submitFeedback: "feedback",
};

/** All times of journeys are the beginning of their minute, or of the window in its first one. Source: docs/reports.md#journeys. */
export const JOURNEY_RESOLUTION_MS = 60_000;

/** Between which stages a journey stopped. */
const Gap = { stage: Stage, next_stage: Stage };

export const JourneyDropOff = z.strictObject({ ...Gap, count: z.int() }).meta({ id: "JourneyDropOff" });
export type JourneyDropOff = z.infer<typeof JourneyDropOff>;

const JourneyTotals = z.strictObject({
  journeys: z.int(),
  events: z.int().meta({ description: "Actions of these journeys, including those that are no longer kept." }),
  retained_actions: z.int(),
  completed: z.int().meta({ description: "Journeys that gave feedback after a session request." }),
  unique_sessions: z
    .int()
    .meta({ description: "Visitors of the whole window; an estimate with an error of about 1 %." }),
});

export const JOURNEY_BOUNDS = {
  max_journeys: WINDOW_LIMITS.journeys,
  max_actions_per_journey: WINDOW_LIMITS.actionsPerJourney,
} as const;

/** Summary of the journeys; also part of traffic-daily. */
export const JourneySummary = z.strictObject({
  totals: JourneyTotals,
  bounds: z.strictObject({
    max_journeys: z.literal(JOURNEY_BOUNDS.max_journeys),
    max_actions_per_journey: z.literal(JOURNEY_BOUNDS.max_actions_per_journey),
  }),
  drop_offs: z
    .array(JourneyDropOff)
    .length(STAGES.length - 1)
    .meta({ description: "In the order of the stages." }),
  largest_drop_off: JourneyDropOff.nullable().meta({ description: "The earliest of several; null without drop-offs." }),
});
export type JourneySummary = z.infer<typeof JourneySummary>;

export const SessionJourney = z.strictObject({
  journey: z
    .int()
    .min(1)
    .meta({ description: "Position in this list; it identifies nobody and changes between reads." }),
  first_seen: z.int(),
  first_seen_iso: z.iso.datetime(),
  last_seen: z.int(),
  last_seen_iso: z.iso.datetime(),
  idle_ms: z.int().min(0).meta({
    description:
      "generated_at - last_seen. last_seen is the beginning of a minute, so this is up to a minute too long.",
  }),
  event_count: z.int(),
  actions: z
    .array(z.strictObject({ action: z.string(), at: z.int() }))
    .max(WINDOW_LIMITS.actionsPerJourney)
    .meta({ description: "The latest actions, oldest first: operation id, and its minute in Unix ms." }),
  actions_truncated: z.boolean(),
  drop_off: z.strictObject(Gap).nullable().meta({ description: "Null: the journey reached the last stage." }),
  next_best_action: z.string(),
});
export type SessionJourney = z.infer<typeof SessionJourney>;

export const SessionJourneys = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  scope: z.literal("process_window"),
  window_started_at: z.int(),
  generated_at: z.int(),
  ...Completeness.shape,
  path: z.array(Stage),
  stage_of_action: z
    .record(z.string(), Stage)
    .meta({ description: "By operation id; every other action belongs to discovery." }),
  ...JourneySummary.shape,
  next_action: z.string(),
  journeys: z.array(SessionJourney).max(WINDOW_LIMITS.journeys).meta({ description: "Latest seen first." }),
  caveat: z.string(),
  privacy: Privacy,
});
export type SessionJourneys = z.infer<typeof SessionJourneys>;
