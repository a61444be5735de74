import type { ProofBoundaries, SessionProofRecord } from "relay-protocol/contract/reports/common.ts";
import type { WindowSnapshot } from "relay-window/counters/snapshot.ts";
import type { SessionProof } from "relay-window/sessions/records.ts";
import type { ReportSettings } from "../settings.ts";
import { withoutIdentities } from "./proof-identities.ts";

/** What every report about session proofs says of them. */
export const PROOF_BOUNDARIES: ProofBoundaries = {
  proves: [
    "A session.request was accepted by the relay at accepted_at.",
    "The target's delivery status at that moment was target_status.",
  ],
  does_not_prove: [
    "That the target read, approved or will answer the request.",
    "Payment, GMV, earnings, completion, payout or reputation.",
  ],
};

/** What ends a session proof before its freshness does. A restart of a service does not. */
export const PROOFS_END = "A deploy that resets the window, or the loss of Redis, ends it earlier.";

/** As much of an accepted request as decides whether it permits a handoff. */
export type AcceptedRequest = Pick<SessionProof, "acceptedAt" | "targetStatus">;

/**
 * True while a proof permits a handoff: the target was online, and `freshnessMs` have not passed; the last millisecond
 * still counts. Times are Unix ms. Source: docs/reports.md#freshness.
 */
export function isFresh(proof: AcceptedRequest, now: number, freshnessMs: number): boolean {
  return proof.targetStatus === "online" && now <= proof.acceptedAt + freshnessMs;
}

/** The retained proofs as reports show them, newest first. Source: docs/reports.md#session-proofs. */
export function recentSessionProofs(snapshot: WindowSnapshot, settings: ReportSettings): SessionProofRecord[] {
  const proofs = snapshot.proofs.map((proof) => proofRecord(proof, snapshot, settings.proofFreshnessMs));
  return settings.proofIdentities === "hidden" ? withoutIdentities(proofs) : proofs;
}

function proofRecord(proof: SessionProof, snapshot: WindowSnapshot, freshnessMs: number): SessionProofRecord {
  const { now, windowStartedAt } = snapshot;
  const expiresAt = proof.acceptedAt + freshnessMs;
  const fresh = isFresh(proof, now, freshnessMs);
  return {
    session_id: proof.sessionId,
    requester: proof.requester,
    target: proof.target,
    accepted_at: proof.acceptedAt,
    accepted_at_iso: new Date(proof.acceptedAt).toISOString(),
    target_status: proof.targetStatus,
    can_deliver_realtime: proof.targetStatus === "online",
    proof_age_ms: now - proof.acceptedAt,
    proof_expires_at: expiresAt,
    proof_expires_at_iso: new Date(expiresAt).toISOString(),
    refresh_required_before_handoff: !fresh,
    process_window_handoff_safety: fresh
      ? "fresh_for_negotiation_handoff"
      : "refresh_required_before_negotiation_handoff",
    source: proof.source,
    same_principal: proof.samePrincipal,
    durable_source: null,
    process_window_started_at: windowStartedAt,
    retained_from_durable_store: false,
  };
}
