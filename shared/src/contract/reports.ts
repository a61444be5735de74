import { z } from "zod";

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
  privacy: Privacy,
});
