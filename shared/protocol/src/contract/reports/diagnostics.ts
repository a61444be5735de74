import { z } from "zod";
import { BLOCKER_CATEGORIES } from "../feedback-labels.ts";
import { Privacy, ProofBoundaries, ScopeFlags } from "./common.ts";
import { TrafficTotals } from "./traffic-daily.ts";
import { Bottleneck, Completeness, ProofGate, PublishedByMinute } from "./window.ts";

/** GET /api/diagnostics: the state of the relay in aggregates. */

const DIAGNOSTIC_BOTTLENECKS = ["no_gateway_live", ...Bottleneck.options] as const;

export const Diagnostics = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  scope: z.literal("process_window"),
  window_started_at: z.int(),
  generated_at: z.int(),
  ...Completeness.shape,
  window: z.strictObject({
    window_id: z.string().meta({ description: "Random; a new id means that all counts started again at 0." }),
    window_started_at_iso: z.iso.datetime(),
    window_age_ms: z.int().min(0),
  }),
  presence: z.strictObject({
    online_agents: z.int(),
    stale_agents: z.int(),
    critical_stale_agents: z
      .int()
      .meta({ description: "Those of stale_agents that have been stale for more than 120 s." }),
    offline_agents: z.int(),
    connections: z.int().meta({ description: "Open websockets of all pods, as each told within 2.5 s." }),
  }),
  counters: TrafficTotals,
  published_envelopes_by_minute: PublishedByMinute,
  published_envelopes_last_5_minutes: z.int(),
  proofs: z.strictObject({ retained: z.int(), ...ProofGate.shape }),
  gateways: z.strictObject({
    live: z.int().meta({ description: "Keys of gateways that were seen within listed_for_ms." }),
    listed_for_ms: z.int(),
  }),
  feedback: z.strictObject({
    total: z.int(),
    message_provided: z.int(),
    blocked: z.int(),
    connector_session_blockers: z.record(z.enum(BLOCKER_CATEGORIES), z.int()),
  }),
  current_bottleneck: z.enum(DIAGNOSTIC_BOTTLENECKS),
  next_action: z.string(),
  ...ScopeFlags.shape,
  proof_boundaries: ProofBoundaries,
  privacy: Privacy,
});
export type Diagnostics = z.infer<typeof Diagnostics>;
