import { z } from "zod";
import { AgentId } from "../agent-id.ts";
import { SessionId } from "../envelope.ts";
import { DELIVERY_STATUSES } from "../presence.ts";
import { PROOF_SOURCES } from "../session.ts";

/** Parts that several reports share. Source: the contract, "Aggregate report shapes". */

/** The flags that every report carries. */
export const Privacy = z
  .strictObject({
    aggregate_only: z.literal(true),
    raw_ip_addresses: z.literal(false),
    user_agents: z.literal(false),
    payloads: z.literal(false),
    api_keys: z.literal(false),
    signatures: z.literal(false),
  })
  .meta({ id: "Privacy" });

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
export const SessionProofRecord = z
  .strictObject({
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
  })
  .meta({ id: "SessionProofRecord" });
export type SessionProofRecord = z.infer<typeof SessionProofRecord>;

/** What the relay's records show, and what they do not. */
export const ProofBoundaries = z
  .strictObject({ proves: z.array(z.string()), does_not_prove: z.array(z.string()) })
  .meta({ id: "ProofBoundaries" });
export type ProofBoundaries = z.infer<typeof ProofBoundaries>;

/** The relay scores nobody: the policy is a statement of intent. */
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

/** What every document that speaks of proofs or readiness says of the relay's scope. */
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

/** What negotiation through the relay means for business: it happens elsewhere. Source: the contract, "Scope boundary". */
export const EconomicOperability = z.strictObject({
  policy: z.literal("coordination_and_negotiation_only"),
  outside_the_relay: z.array(z.string()),
  reputation_scores_exposed: z.literal(false),
  verified_deal_reputation_policy: ReputationPolicy,
});
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
