import { z } from "zod";
import { ACTIONABLE_CATEGORIES, BLOCKER_CATEGORIES, CATEGORIES, OTHER, SENTIMENTS } from "../requests.ts";
import {
  Bottleneck,
  Completeness,
  CurrentWindow,
  EconomicOperability,
  GateReason,
  OperatorQuickScan,
  PostLink,
  Privacy,
  ProofBoundaries,
  ProofGate,
  PublishedByMinute,
  ScopeFlags,
  SessionCounts,
} from "./common.ts";
import { TrafficTotals } from "./traffic.ts";

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
    connections: z.int().meta({ description: "Open websockets of all pods, as each told within 3.5 s." }),
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

/** GET /api/ops/domain-routing: the host of this request, and the expected hosts. */

const Host = z.string().nullable().meta({ description: "Host with port; null when absent or not a valid host name." });
const Scheme = z.enum(["http", "https"]);

const DOMAIN_HINTS = [
  "observed_host_missing",
  "stale_custom_domain",
  "base_url_host_not_expected",
  "ws_url_host_not_expected",
  "scheme_differs_from_base_url",
  "forwarded_headers_not_trusted",
] as const;
export type DomainHint = (typeof DOMAIN_HINTS)[number];

export const DomainRouting = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  observed: z
    .strictObject({
      host: Host,
      scheme: Scheme,
      proxy_host: Host,
      proxy_scheme: Scheme.nullable(),
      proxy_origin: z
        .string()
        .nullable()
        .meta({ description: "The origin that the client requested, by the headers of trusted proxies." }),
      public_origin: z
        .string()
        .nullable()
        .meta({ description: "The proxy origin, or else the origin of the Host header." }),
      forwarded_headers: z.enum(["absent", "not_trusted", "trusted"]),
    })
    .meta({ description: "Of this request only; nothing of it is kept." }),
  expected: z.strictObject({
    public_hosts: z.array(z.string()),
    source: z.enum(["RELAY_PUBLIC_HOSTS", "RELAY_BASE_URL"]),
    base_url: z.string(),
    ws_url: z.string().meta({ description: "Without a path: append /ws, or the alternate websocket path." }),
    trusted_proxy_hops: z.int(),
  }),
  host_matches_expected: z.boolean(),
  stale_custom_domain_hints: z.array(z.strictObject({ code: z.enum(DOMAIN_HINTS), hint: z.string() })),
  next_action: z.string(),
  privacy: Privacy,
});
export type DomainRouting = z.infer<typeof DomainRouting>;

/** GET /api/ops/economic-readiness: which stages are ready, and which are blocked. */

export const READINESS_STAGES = [
  "connector_presence",
  "message_delivery",
  "session_negotiation",
  "online_target_proof",
  "restart_survival",
  "economic_execution",
] as const;

const READINESS_BLOCKERS = [
  "no_connector_online",
  "no_session_request_accepted",
  "session_requests_only_to_offline_targets",
  "no_online_target_proof",
  "session_proof_stale",
  "missing_durable_session_proof_store",
] as const;

export const ReadinessStage = z.strictObject({
  stage: z.enum(READINESS_STAGES),
  status: z.enum(["ready", "blocked", "not_shown_yet", "outside_the_relay"]),
  blockers: z.array(z.enum(READINESS_BLOCKERS)),
  evidence: z.string(),
});
export type ReadinessStage = z.infer<typeof ReadinessStage>;

export const EconomicReadiness = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  window_started_at: z.int(),
  generated_at: z.int(),
  ...Completeness.shape,
  status: z.enum(["ready_for_negotiation_handoff", "not_ready_for_negotiation_handoff"]).meta({
    description:
      "Of the whole window: ready when no stage up to online_target_proof is blocked, so that an agent is online, too; evidence.important_handoff_permitted_from_process_window is of the proof alone.",
  }),
  stages: z.array(ReadinessStage).length(READINESS_STAGES.length),
  blockers: z.array(z.strictObject({ blocker: z.enum(READINESS_BLOCKERS), stage: z.enum(READINESS_STAGES) })),
  evidence: z.strictObject({
    online_agents: z.int(),
    stale_agents: z.int(),
    published_envelopes: z.int(),
    published_to_online_target: z.int().meta({ description: "Of published_envelopes." }),
    session_requests_accepted: z.int().meta({ description: "Through the gateway and over websockets." }),
    session_requests_accepted_over_websockets: z.int(),
    session_requests_accepted_to_online_target: z.int().meta({ description: "Of session_requests_accepted." }),
    ...SessionCounts.shape,
    ...ProofGate.shape,
  }),
  current_bottleneck: Bottleneck,
  next_action: z.string(),
  operator_quick_scan: OperatorQuickScan,
  ...ScopeFlags.shape,
  economic_operability: EconomicOperability,
  proof_boundaries: ProofBoundaries,
  privacy: Privacy,
});
export type EconomicReadiness = z.infer<typeof EconomicReadiness>;

/** GET /api/public/feedback-summary: feedback counted by label. Source: docs/reports.md#feedback. */

const Category = z.enum([...CATEGORIES, OTHER]);
const CategoryCount = { category: Category, count: z.int() };

export const RecommendedAction = z.strictObject({
  category: z.enum(ACTIONABLE_CATEGORIES),
  count: z.int(),
  action: z.string(),
  evidence: z.string(),
  url: z.string(),
});
export type RecommendedAction = z.infer<typeof RecommendedAction>;

export const FeedbackActions = z.strictObject({
  actionable_total: z.int().meta({ description: "Feedback in categories for which somebody has something to do." }),
  smoke_or_deploy_check_total: z.int().meta({ description: "Feedback sent by checks; it never leads to an action." }),
  top_categories: z.array(z.strictObject(CategoryCount)).meta({ description: "Highest count first, without checks." }),
  recommended_actions: z.array(RecommendedAction).meta({ description: "Category with the highest count first." }),
  leading_action: RecommendedAction.nullable(),
  policy: z.strictObject({
    categories: z.array(Category),
    sentiments: z.array(z.enum([...SENTIMENTS, OTHER])),
    unlisted_labels_count_as: z.literal(OTHER),
    raw_message_stored: z.literal(false),
    note: z.string(),
  }),
  privacy: Privacy,
});
export type FeedbackActions = z.infer<typeof FeedbackActions>;

export const FeedbackSummary = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  endpoint_aliases: z.array(z.string()),
  submit_method: z.literal("POST"),
  submit_endpoint: z.string(),
  submit_endpoint_aliases: z.array(z.string()),
  window_started_at: z.int(),
  generated_at: z.int(),
  ...Completeness.shape,
  feedback: z.strictObject({
    total: z.int(),
    message_provided: z.int(),
    by_surface: z.record(z.string(), z.int()),
    by_sentiment: z.record(z.string(), z.int()),
    by_category: z.record(z.string(), z.int()),
    connector_session_blocker_categories: z.record(z.enum(BLOCKER_CATEGORIES), z.int()),
    note: z.string(),
  }),
  feedback_actions: FeedbackActions,
  suggested_blocked_feedback: z
    .strictObject({ surface: z.string(), sentiment: z.literal("blocked"), category: z.enum(ACTIONABLE_CATEGORIES) })
    .meta({ description: "A body for submit_endpoint that reports what blocks an agent in this window." }),
  privacy: Privacy,
});
export type FeedbackSummary = z.infer<typeof FeedbackSummary>;

/** GET /api/public/restart-survival-check: events that end session proofs, and the proofs that would be lost. */

const MISSING_STORE = "missing_durable_session_proof_store";

const RUNBOOK_STATUSES = [
  "passed_fresh_online_target_proof",
  "blocked_no_online_target_proof",
  "blocked_stale_online_target_proof",
  `blocked_${MISSING_STORE}`,
  "due_before_every_handoff",
  "due_in_every_new_window",
] as const;

export const RestartSurvivalCheck = z.strictObject({
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  endpoint: z.string(),
  generated_at: z.int(),
  ...Completeness.shape,
  status: z.literal(`blocked_${MISSING_STORE}`),
  current_blocker: z.strictObject({
    code: z.literal(MISSING_STORE),
    detail: z.string(),
    proofs_at_risk: z
      .int()
      .meta({ description: "Retained proofs that a window reset of a deploy, or the loss of Redis, would delete." }),
  }),
  required_store: z.strictObject({
    name: z.literal("durable_session_proof_store"),
    configured: z.literal(false),
    must: z.array(z.string()),
  }),
  current_process_window: CurrentWindow,
  refresh_gate: z.strictObject({
    ...ProofGate.shape,
    reason: GateReason,
    refresh: PostLink,
  }),
  runbook: z.array(
    z.strictObject({
      step: z.int(),
      name: z.string(),
      status: z.enum(RUNBOOK_STATUSES),
      action: z.string(),
    }),
  ),
  next_action: z.string(),
  ...ScopeFlags.shape,
  proof_boundary: ProofBoundaries,
  privacy: Privacy,
});
export type RestartSurvivalCheck = z.infer<typeof RestartSurvivalCheck>;
