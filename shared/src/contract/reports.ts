import { z } from "zod";
import { AgentId } from "./agent-id.ts";
import { SessionId } from "./envelope.ts";
import { DELIVERY_STATUSES } from "./presence.ts";
import { PROOF_SOURCES } from "./session.ts";

/** Aggregate reports. Source: the contract, "Aggregate report shapes". */

/** The flags that every report carries. */
export const Privacy = z.strictObject({
  aggregate_only: z.literal(true),
  raw_ip_addresses: z.literal(false),
  user_agents: z.literal(false),
  payloads: z.literal(false),
  api_keys: z.literal(false),
  signatures: z.literal(false),
});

/** The same in every report: raw data is not left out of it, it is never kept. */
export const PRIVACY: z.infer<typeof Privacy> = {
  aggregate_only: true,
  raw_ip_addresses: false,
  user_agents: false,
  payloads: false,
  api_keys: false,
  signatures: false,
};

/** Element of `recent_session_proofs`. Source: the contract, "Session proof record". */
export const SessionProofRecord = z.strictObject({
  session_id: SessionId,
  requester: AgentId,
  target: AgentId,
  accepted_at: z.int(),
  accepted_at_iso: z.iso.datetime(),
  target_status: z.enum(DELIVERY_STATUSES),
  can_deliver_realtime: z.boolean(),
  proof_age_ms: z.int(),
  proof_expires_at: z.int(),
  proof_expires_at_iso: z.iso.datetime(),
  refresh_required_before_handoff: z.boolean(),
  process_window_handoff_safety: z.enum([
    "fresh_for_negotiation_handoff",
    "refresh_required_before_negotiation_handoff",
  ]),
  source: z.enum(PROOF_SOURCES),
  durable_source: z.null(),
  process_window_started_at: z.int(),
  retained_from_durable_store: z.literal(false),
});
export type SessionProofRecord = z.infer<typeof SessionProofRecord>;

/** What the relay's records show, and what they do not. */
export const ProofBoundaries = z.strictObject({ proves: z.array(z.string()), does_not_prove: z.array(z.string()) });
export type ProofBoundaries = z.infer<typeof ProofBoundaries>;

/** `totals` of traffic-daily; process-window counts. Source: protocol, section 10. */
export const TrafficTotals = z.strictObject({
  total_events: z.int(),
  unique_sessions: z.int(),
  surface_views: z.int(),
  onboarding_checks: z.int(),
  websocket_accepted: z.int(),
  published_envelopes: z.int(),
  simple_send_accepted: z.int(),
  simple_session_request_accepted: z.int(),
  simple_session_request_accepted_to_online_target: z.int(),
  simple_session_request_accepted_to_offline_target: z.int(),
  feedback_total: z.int(),
});

/** GET /api/ops/traffic-daily. */
export const TrafficDaily = z.looseObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  scope: z.string(),
  window_started_at: z.int(),
  generated_at: z.int(),
  caveat: z.string(),
  totals: TrafficTotals,
  top_surfaces: z.array(z.strictObject({ name: z.string(), count: z.int() })),
  durable_window: z.strictObject({
    durable_session_proof_store_configured: z.literal(false),
    window_started_at: z.null(),
    retained_proofs: z.literal(0),
  }),
  recent_session_proofs: z.array(SessionProofRecord),
  proof_boundaries: ProofBoundaries,
  /** Every counter under its full name. */
  monitors: z.record(z.string(), z.int()),
  privacy: Privacy,
});
export type TrafficDaily = z.infer<typeof TrafficDaily>;
