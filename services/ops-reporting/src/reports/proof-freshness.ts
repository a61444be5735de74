import type { ProofGate, ProofState, RefreshUrgency } from "relay-protocol/contract/reports/common.ts";
import { duration, isoOrNull } from "./format.ts";
import { type AcceptedRequest, isFresh } from "./session-proofs.ts";

/** Whether the last session request accepted to an online target still permits a handoff. Source: docs/reports.md#freshness. */
export interface ProofFreshness {
  readonly state: ProofState;
  /** Unix ms; null without a proof. */
  readonly acceptedAt: number | null;
  readonly expiresAt: number | null;
  /** Expiry minus now: negative when stale. */
  readonly msUntilRefreshDue: number | null;
  /** Its absolute value when stale, 0 when fresh. */
  readonly staleByMs: number | null;
}

/** Pure. */
export function proofFreshness(
  { lastOnlineProof, now }: { readonly lastOnlineProof: AcceptedRequest | null; readonly now: number },
  freshnessMs: number,
): ProofFreshness {
  if (lastOnlineProof === null) {
    return { state: "none", acceptedAt: null, expiresAt: null, msUntilRefreshDue: null, staleByMs: null };
  }
  const expiresAt = lastOnlineProof.acceptedAt + freshnessMs;
  const msUntilRefreshDue = expiresAt - now;
  const fresh = isFresh(lastOnlineProof, now, freshnessMs);
  return {
    state: fresh ? "fresh" : "stale_refresh_due",
    acceptedAt: lastOnlineProof.acceptedAt,
    expiresAt,
    msUntilRefreshDue,
    staleByMs: fresh ? 0 : -msUntilRefreshDue,
  };
}

const URGENCIES: Readonly<Record<ProofState, RefreshUrgency>> = {
  none: "no_proof_request_now",
  fresh: "fresh_no_refresh_due",
  stale_refresh_due: "expired_refresh_now",
};

/** The freshness in the form that reports show. Pure. */
export function proofGate(freshness: ProofFreshness, freshnessMs: number): ProofGate {
  const { state, acceptedAt, expiresAt } = freshness;
  return {
    proof_freshness: state,
    important_handoff_permitted_from_process_window: state === "fresh",
    refresh_before_important_handoff: state !== "fresh",
    refresh_urgency: URGENCIES[state],
    proof_freshness_window_ms: freshnessMs,
    proof_freshness_expires_at: expiresAt,
    proof_freshness_expires_at_iso: isoOrNull(expiresAt),
    ms_until_refresh_due: freshness.msUntilRefreshDue,
    stale_by_ms: freshness.staleByMs,
    latest_online_target_proof_at: acceptedAt,
    latest_online_target_proof_at_iso: isoOrNull(acceptedAt),
  };
}

/** The freshness in one sentence. Pure. */
export function proofHeadline({ state, msUntilRefreshDue, staleByMs }: ProofFreshness): string {
  if (state === "none") return "No session request to an online target was accepted in this window.";
  if (state === "fresh") return `The online-target proof is fresh for another ${duration(msUntilRefreshDue ?? 0)}.`;
  return `The online-target proof has been stale for ${duration(staleByMs ?? 0)}.`;
}
