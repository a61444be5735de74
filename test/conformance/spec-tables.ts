import { FEEDBACK_SUMMARY, FUNNEL, PRIVACY, REFRESH_PACKET, RETENTION, SIGNING, TRAFFIC } from "./spec-shapes.ts";

/**
 * What clients are promised, as tables: every path with its aliases, its status, and the fields that are
 * promised by name. A dot goes into an object, `[]` into the elements of a list that must not be empty.
 */

export interface Promised {
  readonly path: string;
  readonly aliases?: readonly string[];
  /** Content type; JSON where none is given. */
  readonly media?: string;
  readonly fields: readonly string[];
}

/** What the gateway answers with 202. */
export const ACCEPTED_ENVELOPE = ["ok", "envelope_id", "accepted", "id", "type"];
export const ACCEPTED_SESSION = [
  "ok",
  "accepted",
  "session_id",
  "envelope_id",
  "target_delivery.status",
  "target_delivery.can_deliver_realtime",
  "next.monitor.metric",
  "next.ecosystem_handoff",
  "next.marketplace_first_job_handoff",
  "next.first_job_handoff_priority",
  "next.async_negotiation_fallback.mode",
  "next.verified_deal_reputation_policy.status",
];
export const FEEDBACK_ACK = ["ok", "stored", "raw_message_stored"];
export const FEEDBACK_PATHS = ["/api/public/feedback", "/api/feedback"];
export const RATE_LIMITED = ["retry_after_ms", "retry_after_seconds"];

/** Every GET that is promised. */
export const READS: readonly Promised[] = [
  {
    path: "/api/onboarding/check-online?agent_id=agent://bob",
    fields: [
      "status",
      "can_deliver_realtime",
      "stale_ms",
      "next_action",
      "caveat",
      "recovery.quickstart",
      "recovery.liveness_contract",
    ],
  },
  {
    path: "/api/onboarding/online-agents",
    fields: ["online_agents", "stale_agents", "stale_after_ms", "next_action"],
  },
  {
    path: "/api/public/feedback-summary",
    aliases: [
      "/api/public/feedback/summary",
      "/api/feedback/summary",
      "/api/ops/feedback-summary",
      "/api/ops/feedback",
    ],
    fields: FEEDBACK_SUMMARY,
  },
  { path: "/api/diagnostics", aliases: ["/api/ops/diagnostics"], fields: PRIVACY },
  { path: "/api/ops/economic-readiness", fields: ["stages", "blockers", "evidence", ...PRIVACY] },
  { path: "/api/ops/activation-funnel", fields: FUNNEL },
  { path: "/api/ops/traffic-daily", aliases: ["/api/ops/traffic-summary"], fields: TRAFFIC },
  { path: "/api/ops/domain-routing", fields: ["observed", "expected", "stale_custom_domain_hints"] },
  {
    path: "/api/ops/session-journeys",
    fields: [
      "journeys[].first_seen",
      "journeys[].last_seen",
      "journeys[].event_count",
      "journeys[].actions[].action",
      "journeys[].next_best_action",
      "drop_offs",
      ...PRIVACY,
    ],
  },
  { path: "/api/ops/session-proof-retention", fields: RETENTION },
  {
    path: "/api/public/restart-survival-check",
    fields: [
      "status",
      "current_blocker",
      "required_store",
      "current_process_window",
      "refresh_gate",
      "runbook",
      "next_action",
      "proof_boundary",
      ...PRIVACY,
    ],
  },
  { path: "/v1/simple-capabilities", fields: ["capabilities[].request_example", "limits"] },
  {
    path: "/api/public/activation-plan",
    fields: [
      "readiness",
      "next_action",
      "connector_recovery",
      "minimum_viable_proof[]",
      "copy_paste_steps[]",
      "economic_operability.policy",
      ...PRIVACY,
    ],
  },
  {
    path: "/api/public/session-request-guide",
    fields: [
      "proof_target",
      "current_window",
      "readiness_gate",
      "prerequisites[]",
      "gateway.description",
      "websocket_envelope.description",
      "acceptance_monitoring",
      "next_steps[]",
      ...REFRESH_PACKET.map((name) => `compact_refresh_packet.${name}`),
      ...PRIVACY,
    ],
  },
  {
    path: "/api/public/session-request-refresh-packet",
    fields: [...REFRESH_PACKET, ...PRIVACY],
  },
  { path: "/api/public/ecosystem-handoff", fields: ["relay_prerequisites[]", "proof_gate", "links", ...PRIVACY] },
  { path: "/api/public/marketplace-first-job-handoff", fields: ["proof_gate", "steps[]", "links", ...PRIVACY] },
  {
    path: "/api/public/marketplace-handoff-status",
    fields: [
      "status",
      "allowed_next_step",
      "proof_freshness",
      "important_handoff_permitted_from_process_window",
      "accepted_online_target",
      ...PRIVACY,
    ],
  },
  { path: "/api/self-test", fields: ["canonical_signing_order", "request_template", "privacy", "next_proof_step"] },
  { path: "/llms.txt", aliases: ["/.well-known/llms.txt"], media: "text/plain", fields: [] },
  {
    path: "/.well-known/relay-manifest.json",
    fields: ["service", "version", "links", "limits", "scope_boundary", ...PRIVACY],
  },
  { path: "/.well-known/signing-manifest.json", fields: SIGNING },
  { path: "/.well-known/agent.json", fields: [...SIGNING, "openapi", "readiness", "handoff"] },
  { path: "/openapi.json", aliases: ["/.well-known/openapi.json"], fields: ["openapi", "info.version", "paths"] },
  { path: "/.well-known/security.txt", media: "text/plain", fields: [] },
  { path: "/health", fields: ["ok"] },
  { path: "/health.agent_readable", fields: ["ok", "meaning", "online_agents"] },
  { path: "/ready", fields: ["online_agents", "stale_agents", "next_action"] },
  { path: "/robots.txt", media: "text/plain", fields: [] },
  { path: "/sitemap.xml", media: "application/xml", fields: [] },
  { path: "/", media: "text/html", fields: [] },
  { path: "/product/design", media: "text/html", fields: [] },
  { path: "/API/discovery", fields: ["groups"] },
];
