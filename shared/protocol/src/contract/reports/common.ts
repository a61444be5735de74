import { z } from "zod";
import { SESSION_LIMITS, WINDOW_LIMITS } from "../../wire/limits.ts";
import { AgentId, SessionId } from "../envelope.ts";

import { DELIVERY_STATUSES } from "../presence.ts";
import { PROOF_SOURCES } from "../session.ts";

/** The window, its sessions and their proofs, as parts of several reports. Source: docs/reports.md#freshness. */

const ProofState = z.enum(["none", "fresh", "stale_refresh_due"]).meta({
  id: "ProofState",
  description:
    "none: no request to an online target was accepted. fresh: the last one is at most proof_freshness_window_ms old. stale_refresh_due: it is older.",
});
export type ProofState = z.infer<typeof ProofState>;

const RefreshUrgency = z.enum(["no_proof_request_now", "fresh_no_refresh_due", "expired_refresh_now"]).meta({
  id: "RefreshUrgency",
  description: "proof_freshness as an action.",
});
export type RefreshUrgency = z.infer<typeof RefreshUrgency>;

/** The obstacle between the window and a handoff, or `none`. Somebody can always remove it. */
export const Bottleneck = z
  .enum([
    "no_connector_online",
    "no_session_request_accepted",
    "session_requests_only_to_offline_targets",
    "session_proof_stale",
    "none",
  ])
  .meta({ id: "Bottleneck" });
export type Bottleneck = z.infer<typeof Bottleneck>;

const EpochMs = z.int();
const Iso = z.iso.datetime();

const HandoffPermitted = z.boolean().meta({
  id: "HandoffPermitted",
  description:
    "Without a target: the last proof of the window is fresh; no decision counts, nor who is online now; false with session_id. With target_agent_id alone: the target has a fresh proof, whoever requested it. With from or session_id beside it: the request of the session that session_id names is a fresh proof, and its target approved it.",
});

/** Part of every gate. */
export const GateReason = z.string().meta({ id: "GateReason", description: "Why, in one sentence." });

/** Whether the latest acceptance for an online target permits a handoff. Null if there is no such acceptance. */
export const ProofGate = z.strictObject({
  proof_freshness: ProofState,
  important_handoff_permitted_from_process_window: HandoffPermitted,
  refresh_before_important_handoff: z.boolean(),
  refresh_urgency: RefreshUrgency,
  proof_freshness_window_ms: z.int(),
  proof_freshness_expires_at: EpochMs.nullable(),
  proof_freshness_expires_at_iso: Iso.nullable(),
  ms_until_refresh_due: z.int().nullable().meta({ description: "Expiry minus now: negative when stale." }),
  stale_by_ms: z.int().nullable().meta({ description: "How long the proof has been stale; 0 while fresh." }),
  latest_online_target_proof_at: EpochMs.nullable(),
  latest_online_target_proof_at_iso: Iso.nullable(),
});
export type ProofGate = z.infer<typeof ProofGate>;

/** Session requests through the gateway. Also the kept proofs of requests through the gateway and by websocket. */
export const SessionCounts = z.strictObject({
  simple_session_request_accepted: z.int(),
  accepted_to_online_target: z.int(),
  accepted_to_offline_target: z.int(),
  retained_process_window_proofs: z.int().max(SESSION_LIMITS.retainedProofs),
  retained_durable_proofs: z.literal(0),
});
export type SessionCounts = z.infer<typeof SessionCounts>;

export const CurrentWindow = z
  .strictObject({
    scope: z.literal("process_window"),
    window_started_at: EpochMs,
    window_started_at_iso: Iso,
    window_age_ms: z.int(),
    retention_limit: z.literal(SESSION_LIMITS.retainedProofs),
    ...SessionCounts.shape,
  })
  .meta({ id: "CurrentWindow" });
export type CurrentWindow = z.infer<typeof CurrentWindow>;

export const PublishedByMinute = z
  .array(z.strictObject({ minute_started_at: EpochMs, count: z.int() }))
  .length(WINDOW_LIMITS.minutes)
  .meta({ id: "PublishedByMinute", description: "The last 60 minutes, oldest first; the last one has not ended." });
export type PublishedByMinute = z.infer<typeof PublishedByMinute>;

/** Whether a report is complete. Source: docs/reports.md#complete. */
export const Completeness = z.strictObject({
  complete: z.boolean().meta({
    description: "False while partitions cannot be read, and once something was lost; always true of one Redis.",
  }),
  may_lack_since: EpochMs.nullable().meta({
    description: "From when on something may be missing, at the earliest; null of a complete report.",
  }),
  partitions: z
    .strictObject({
      total: z.int(),
      missing: z.array(z.int()).meta({ description: "Cannot be read now: nothing that they have is in this report." }),
      may_lack: z.array(z.int()).meta({ description: "Lost something, their last moments or all that they had." }),
      control_may_lack: z.boolean().meta({ description: "The same of what is counted for all partitions together." }),
    })
    .meta({
      id: "Partitions",
      description: "The parts into which the state of a relay on a Redis Cluster is divided.",
    }),
});
export type Completeness = z.infer<typeof Completeness>;

/** There is no durable store, and so no durable window. */
export const DurableWindow = z
  .strictObject({
    durable_session_proof_store_configured: z.literal(false),
    window_started_at: z.null(),
    retained_proofs: z.literal(0),
  })
  .meta({ id: "DurableWindow" });
export const DURABLE_WINDOW: z.infer<typeof DurableWindow> = {
  durable_session_proof_store_configured: false,
  window_started_at: null,
  retained_proofs: 0,
};

/** Summary that an operator reads first. */
export const OperatorQuickScan = z
  .strictObject({
    headline: z.string(),
    online_agents: z.int(),
    stale_agents: z.int(),
    simple_session_request_accepted: z.int(),
    accepted_to_online_target: z.int(),
    accepted_to_offline_target: z.int(),
    proof_freshness: ProofState,
    refresh_urgency: RefreshUrgency,
    ms_until_refresh_due: z.int().nullable(),
    current_bottleneck: Bottleneck,
    next_action: z.string(),
  })
  .meta({ id: "OperatorQuickScan" });
export type OperatorQuickScan = z.infer<typeof OperatorQuickScan>;

/** Parts of several reports. Source: docs/reports.md#reports. */

/** Flags in every report. */
export const Privacy = z
  .strictObject({
    aggregate_only: z.literal(true).meta({
      description:
        "Of what is counted: the relay keeps counts, never what was counted. Single sessions and session proofs are no counts; `identities` says which of them this document shows.",
    }),
    raw_ip_addresses: z.literal(false),
    user_agents: z.literal(false),
    payloads: z.literal(false),
    api_keys: z.literal(false),
    signatures: z.literal(false).meta({ description: "Of envelopes; credentials are public certificates." }),
    identities: z.string().meta({ description: "Which agent ids and session ids this document shows." }),
  })
  .meta({ id: "Privacy" });
type Privacy = z.infer<typeof Privacy>;

/**
 * Raw data is never kept, not only left out of reports. The flag on signatures means envelopes: a credential that is
 * looked up holds its issuer's signature. Used in every document without session proofs.
 */
export const PRIVACY: Privacy = {
  aggregate_only: true,
  raw_ip_addresses: false,
  user_agents: false,
  payloads: false,
  api_keys: false,
  signatures: false,
  identities: "None, but for those that the request names.",
};

/**
 * Flags of the first-job handoff. It may name a session of the two agents in its query.
 * Source: docs/reports.md#one-target.
 */
export const HANDOFF_PRIVACY: Privacy = {
  ...PRIVACY,
  identities:
    "Those that the request names, and the newest session between them, unless the operator hides the identities of session proofs.",
};

/** Whether session proofs name agents and sessions, or number them: setting RELAY_PROOF_IDENTITIES. */
export const PROOF_IDENTITIES = ["shown", "hidden"] as const;
type ProofIdentities = (typeof PROOF_IDENTITIES)[number];

/** Flags of the documents with session proofs. Source: docs/reports.md#session-proofs. */
export const PROOF_PRIVACY: Readonly<Record<ProofIdentities, Privacy>> = {
  shown: {
    ...PRIVACY,
    identities:
      "Counts are aggregates; recent_session_proofs are single requests: they name requester, target and session in public; whoever has a session id can read that session's status at /sessions/{session_id} (a template, RFC 6570).",
  },
  hidden: {
    ...PRIVACY,
    identities:
      "Counts are aggregates; recent_session_proofs are single requests, and number agents and sessions; a number means nothing outside this document.",
  },
};

/** An id, or its replacement if identities are hidden: `session-1`, `agent-1`. */
const shownOrNumbered = (id: z.ZodString, word: string) =>
  z.union([id, z.string().regex(new RegExp(`^${word}-[1-9][0-9]*$`))]);

/** Element of `recent_session_proofs`. Source: docs/reports.md#session-proofs. */
export const SessionProofRecord = z
  .strictObject({
    session_id: shownOrNumbered(SessionId, "session"),
    requester: shownOrNumbered(AgentId, "agent"),
    target: shownOrNumbered(AgentId, "agent"),
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
    same_principal: z.boolean().meta({
      description: "Requester and target answer to one key or issuer.",
    }),
    durable_source: z.null(),
    process_window_started_at: z.int(),
    retained_from_durable_store: z.literal(false),
  })
  .meta({ id: "SessionProofRecord" });
export type SessionProofRecord = z.infer<typeof SessionProofRecord>;

/** Target of a POST. */
export const PostLink = z.strictObject({ method: z.literal("POST"), url: z.string() }).meta({ id: "PostLink" });

/** What the relay's records prove, and what they do not prove. */
export const ProofBoundaries = z
  .strictObject({ proves: z.array(z.string()), does_not_prove: z.array(z.string()) })
  .meta({ id: "ProofBoundaries" });
export type ProofBoundaries = z.infer<typeof ProofBoundaries>;

/** The relay has no reputation scores. The policy is metadata for the future. */
export const ReputationPolicy = z
  .strictObject({
    status: z.literal("roadmap_metadata_only"),
    reputation_scores_exposed: z.literal(false),
  })
  .meta({ id: "ReputationPolicy" });
export const REPUTATION_POLICY: z.infer<typeof ReputationPolicy> = {
  status: "roadmap_metadata_only",
  reputation_scores_exposed: false,
};

/** Scope of the relay, in every document about proofs or readiness. */
export const ScopeFlags = z.strictObject({
  durable_session_proof_store_configured: z.literal(false),
  reputation_scores_exposed: z.literal(false),
  verified_deal_reputation_policy: ReputationPolicy,
});
export const SCOPE_FLAGS: z.infer<typeof ScopeFlags> = {
  durable_session_proof_store_configured: false,
  reputation_scores_exposed: false,
  verified_deal_reputation_policy: REPUTATION_POLICY,
};

/** The relay only coordinates and negotiates. Business is outside of it. Source: docs/reports.md#scope. */
export const EconomicOperability = z
  .strictObject({
    policy: z.literal("coordination_and_negotiation_only"),
    outside_the_relay: z.array(z.string()),
    reputation_scores_exposed: z.literal(false),
    verified_deal_reputation_policy: ReputationPolicy,
  })
  .meta({ id: "EconomicOperability" });
export const ECONOMIC_OPERABILITY: z.infer<typeof EconomicOperability> = {
  policy: "coordination_and_negotiation_only",
  outside_the_relay: [
    "task_execution",
    "payment",
    "escrow",
    "payout",
    "settlement_verification",
    "completion",
    "reputation_scoring",
  ],
  reputation_scores_exposed: false,
  verified_deal_reputation_policy: REPUTATION_POLICY,
};
