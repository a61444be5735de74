import type { SessionProof, WindowSnapshot } from "@agent-relay/shared/window/snapshot.ts";

export const STARTED_AT = 1_790_000_000_000;
export const FRESHNESS_MS = 10_800_000;

/** A window in which nothing has happened, with changes. */
export function snapshotOf(changes: Partial<WindowSnapshot> = {}): WindowSnapshot {
  return {
    now: STARTED_AT + 60_000,
    windowId: "win_test",
    windowStartedAt: STARTED_AT,
    deployId: "local",
    counters: new Map(),
    traffic: new Map(),
    surfaces: new Map(),
    feedback: new Map(),
    visitors: 0,
    proofs: [],
    lastOnlineProof: null,
    ...changes,
  };
}

export function proofOf(changes: Partial<SessionProof> = {}): SessionProof {
  return {
    sessionId: "ses_00abcdefghjkmnpqrstvwxyz01",
    requester: "agent://alice",
    target: "agent://bob",
    acceptedAt: STARTED_AT,
    targetStatus: "online",
    source: "simple_session_api",
    ...changes,
  };
}
