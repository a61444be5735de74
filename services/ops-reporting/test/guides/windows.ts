import { FRESHNESS_MS, proofOf, STARTED_AT, sourceOf, type WholeSource } from "../report-sources.ts";

/** One window for each situation of a guide. `agent://bob` is live in them: a guide may not name it unless asked for it. */

const NOBODY = { ok: 0, stale: 0, critical_stale: 0, offline: 0 };
const ONLINE = { presence: { ...NOBODY, ok: 2 } };
const PROOF = { proofs: [proofOf()], lastOnlineProof: proofOf() };
const TO_OFFLINE = proofOf({ targetStatus: "not_seen" });

/** The last millisecond in which the proof of these windows is fresh. */
export const LAST_FRESH_MS = STARTED_AT + FRESHNESS_MS;

const accepted = (online: number, offline: number) => ({
  counters: new Map([
    ["websocket_accepted", 5],
    ["session_requests", online + offline],
    ["simple_session_request_accepted", online + offline],
    ["simple_session_request_accepted_to_online_target", online],
    ["simple_session_request_accepted_to_offline_target", offline],
  ]),
});

export const EMPTY = sourceOf();
export const NONE_ONLINE = sourceOf({ presence: { ok: 0, stale: 1, critical_stale: 2, offline: 4 } });
export const NO_REQUEST = sourceOf(ONLINE);
export const OFFLINE_ONLY = sourceOf({ ...ONLINE, ...accepted(0, 3), proofs: [TO_OFFLINE, TO_OFFLINE, TO_OFFLINE] });
export const FRESH = freshAt(LAST_FRESH_MS);
export const EXPIRED = freshAt(LAST_FRESH_MS + 1);
export const EXPIRED_NONE_ONLINE: WholeSource = { ...EXPIRED, presence: { ...NOBODY, stale: 1 } };
export const FRESH_NONE_ONLINE: WholeSource = { ...FRESH, presence: { ...NOBODY, offline: 1 } };

function freshAt(now: number): WholeSource {
  return sourceOf({ ...ONLINE, ...accepted(1, 0), ...PROOF, now });
}
