/** Names of the promised fields; spec-tables.ts says where each is answered and how names are read. */

const under = (parent: string, ...names: readonly string[]) => names.map((name) => `${parent}.${name}`);

export const PRIVACY = under(
  "privacy",
  "aggregate_only",
  "raw_ip_addresses",
  "user_agents",
  "payloads",
  "api_keys",
  "signatures",
);

const PROOF_BOUNDARIES = under("proof_boundaries", "proves", "does_not_prove");

const PROOFS = under(
  "recent_session_proofs[]",
  "session_id",
  "requester",
  "target",
  "accepted_at",
  "accepted_at_iso",
  "target_status",
  "can_deliver_realtime",
  "proof_age_ms",
  "proof_expires_at",
  "proof_expires_at_iso",
  "refresh_required_before_handoff",
  "process_window_handoff_safety",
  "source",
  "durable_source",
  "process_window_started_at",
  "retained_from_durable_store",
);

const WINDOWS_AND_PROOFS = ["current_window", "durable_window", ...PROOFS, ...PROOF_BOUNDARIES, "monitors", ...PRIVACY];

export const TRAFFIC = [
  "ok",
  "service",
  "endpoint",
  "scope",
  "window_started_at",
  "generated_at",
  "caveat",
  ...under(
    "totals",
    "total_events",
    "unique_sessions",
    "surface_views",
    "onboarding_checks",
    "websocket_accepted",
    "published_envelopes",
    "simple_send_accepted",
    "simple_session_request_accepted",
    "simple_session_request_accepted_to_online_target",
    "simple_session_request_accepted_to_offline_target",
    "feedback_total",
  ),
  "top_surfaces[].name",
  "top_surfaces[].count",
  "funnel",
  "session_journeys",
  "session_proof_retention",
  ...WINDOWS_AND_PROOFS,
  "operator_quick_scan",
];

export const FUNNEL = [
  "ok",
  "service",
  "window_started_at",
  "purpose",
  ...under(
    "stages[]",
    "stage",
    "status",
    "count",
    "evidence",
    "previous_stage",
    "dropoff_from_previous",
    "conversion_rate_from_previous",
  ),
  ...under("dropoffs[]", "from", "to", "previous_count", "current_count", "dropoff_count", "conversion_rate", "status"),
  "largest_current_dropoff",
  "next_action",
  "recommended_next_step",
  "operator_quick_scan",
  "product_insight",
  "instrumentation_gaps",
  "economic_operability",
  ...PRIVACY,
  "note",
];

export const RETENTION = [
  "ok",
  "service",
  "endpoint",
  "status",
  "activation_status",
  "current_bottleneck",
  "next_operator_action",
  "simple_session_request_accepted",
  "accepted_to_online_target",
  "retained_process_window_proofs",
  "retained_durable_proofs",
  "durable_session_proof_store_configured",
  "proof_freshness",
  "important_handoff_permitted_from_process_window",
  "refresh_before_important_handoff",
  "proof_freshness_window_ms",
  "proof_freshness_expires_at",
  "proof_freshness_expires_at_iso",
  "ms_until_refresh_due",
  "stale_by_ms",
  "latest_online_target_proof_at",
  "latest_online_target_proof_at_iso",
  "operator_quick_scan",
  "activation_check",
  "durability",
  ...WINDOWS_AND_PROOFS,
];

export const FEEDBACK_SUMMARY = [
  "ok",
  ...under(
    "feedback",
    "total",
    "message_provided",
    "by_surface",
    "by_sentiment",
    "by_category",
    "connector_session_blocker_categories.connector_not_seen",
    "connector_session_blocker_categories.stale_presence",
    "connector_session_blocker_categories.session_request_failed",
    "connector_session_blocker_categories.next_step_unclear",
    "note",
  ),
  ...under(
    "feedback_actions",
    "actionable_total",
    "smoke_or_deploy_check_total",
    "top_categories",
    "recommended_actions",
    "leading_action",
    "policy",
    "privacy",
  ),
  ...PRIVACY,
  "suggested_blocked_feedback",
];

export const SIGNING = ["canonical_signing_order", "test_vectors[].sig", "websocket.urls", "max_clock_skew_ms"];

export const REFRESH_PACKET = [
  "status",
  "action",
  "should_refresh_before_handoff",
  "refresh_urgency",
  "target_agent_id",
  "method",
  "endpoint",
  "auth_header",
  "request_body",
  "preflight_checklist[]",
  "troubleshooting[]",
  "post_refresh_gate",
];
