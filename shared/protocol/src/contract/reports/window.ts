import { z } from "zod";
import { SESSION_LIMITS, WINDOW_LIMITS } from "../limits.ts";

/** The window, its sessions and their proof, in several reports. Source: docs/reports.md#freshness. */

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

/** What keeps the window from a handoff, always something that somebody can change; `none` when nothing does. */
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

/** Of every gate. */
export const GateReason = z.string().meta({ id: "GateReason", description: "Why, in one sentence." });

/** Whether the latest acceptance for an online target permits a handoff. Null: there is no such acceptance. */
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

/** Session requests through the gateway, and the proofs retained of these and of requests by websocket. */
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

/** Whether a report has all that it should. Source: docs/reports.md#complete. */
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

/** There is no durable store, and so no window of it. */
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

/** The summary that an operator reads first. */
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
