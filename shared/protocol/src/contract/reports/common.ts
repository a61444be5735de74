import { z } from "zod";
import { AgentId } from "../agent-id.ts";
import { SessionId } from "../envelope.ts";
import { DELIVERY_STATUSES } from "../presence.ts";
import { PROOF_SOURCES } from "../session.ts";

/** Parts of several reports. Source: docs/reports.md#reports. */

/** The flags that every report carries. */
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
 * Raw data is never kept, not merely left out of reports; of signatures those of envelopes, since a credential that is looked
 * up has its issuer's. This is of every document that shows no session proofs.
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

/** Of the first-job handoff, which may name a session of the two agents that it is asked about. Source: docs/reports.md#one-target. */
export const HANDOFF_PRIVACY: Privacy = {
  ...PRIVACY,
  identities:
    "Those that the request names, and the newest session between them, unless the operator hides the identities of session proofs.",
};

/** Whether session proofs name agents and sessions, or number them: the setting RELAY_PROOF_IDENTITIES. */
export const PROOF_IDENTITIES = ["shown", "hidden"] as const;
export type ProofIdentities = (typeof PROOF_IDENTITIES)[number];

/** Of the documents that show session proofs. Source: docs/reports.md#session-proofs. */
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

/** An id, or what stands for it when identities are hidden: `session-1`, `agent-1`. */
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

/** Where a POST goes. */
export const PostLink = z.strictObject({ method: z.literal("POST"), url: z.string() }).meta({ id: "PostLink" });

/** What the relay's records prove, and what they do not. */
export const ProofBoundaries = z
  .strictObject({ proves: z.array(z.string()), does_not_prove: z.array(z.string()) })
  .meta({ id: "ProofBoundaries" });
export type ProofBoundaries = z.infer<typeof ProofBoundaries>;

/** The relay has no reputation scores: the policy is metadata for the future. */
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

/** The relay's scope, in every document about proofs or readiness. */
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

/** Business is outside the relay, which only coordinates and negotiates. Source: docs/reports.md#scope. */
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
