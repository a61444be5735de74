import type { ProofBoundaries, SessionProofRecord } from "@agent-relay/shared/contract/reports/common.ts";
import type { SessionProof, WindowSnapshot } from "@agent-relay/shared/window/snapshot.ts";

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

/**
 * True while a proof may carry a handoff: the target was online, and the window of freshness, its last millisecond
 * included, is not over. Times are epoch ms. Source: the contract, "Session proof freshness".
 */
export function isFresh(proof: SessionProof, now: number, freshnessMs: number): boolean {
  return proof.targetStatus === "online" && now <= proof.acceptedAt + freshnessMs;
}

/** The retained proofs as reports show them, newest first. Source: the contract, "Session proof record". */
export function recentSessionProofs(snapshot: WindowSnapshot, freshnessMs: number): SessionProofRecord[] {
  return snapshot.proofs.map((proof) => proofRecord(proof, snapshot, freshnessMs));
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
    durable_source: null,
    process_window_started_at: windowStartedAt,
    retained_from_durable_store: false,
  };
}
