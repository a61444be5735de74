import type {
  ProofBoundaries,
  ProofGate,
  ProofState,
  RefreshUrgency,
  SessionProofRecord,
} from "relay-protocol/contract/reports/common.ts";
import type { WindowSnapshot } from "relay-window/counters/snapshot.ts";
import type { SessionProof } from "relay-window/sessions/session-records.ts";
import type { ReportSettings } from "../settings.ts";
import { duration, isoOrNull } from "./figures.ts";

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

/**
 * The proofs with numbers in the place of agents and sessions. Within one document the same agent has the same number, in the
 * order in which agents come. Pure. Source: docs/reports.md#session-proofs.
 */
export function withoutIdentities(proofs: readonly SessionProofRecord[]): SessionProofRecord[] {
  const session = numbering("session");
  const agent = numbering("agent");
  return proofs.map((proof) => ({
    ...proof,
    session_id: session(proof.session_id),
    requester: agent(proof.requester),
    target: agent(proof.target),
  }));
}

function numbering(word: string): (id: string) => string {
  const numbers = new Map<string, number>();
  return (id) => {
    const number = numbers.get(id) ?? numbers.size + 1;
    numbers.set(id, number);
    return `${word}-${number}`;
  };
}
