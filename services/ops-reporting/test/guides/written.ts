import type { GuideQuery } from "relay-protocol/contract/reports/guides.ts";
import type { TargetDecision } from "relay-protocol/contract/session.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import { type Presence, presenceOf } from "relay-window/presence/presence.ts";
import type { Target, TargetSession } from "relay-window/sessions/look-ups.ts";
import { activationPlan } from "../../src/guides/activation-plan.ts";
import { type GuideId, type GuideSettings, guideContext } from "../../src/guides/guide.ts";
import {
  ecosystemHandoff,
  marketplaceFirstJobHandoff,
  marketplaceHandoffStatus,
} from "../../src/guides/marketplace-handoff.ts";
import { sessionRequestGuide, sessionRequestRefreshPacket } from "../../src/guides/session-request-guide.ts";
import { FRESHNESS_MS, proofOf, STARTED_AT, type WholeSource } from "../report-sources.ts";

export const SETTINGS: GuideSettings = {
  baseUrl: "https://relay.example",
  wsUrl: "wss://sockets.example",
  proofFreshnessMs: FRESHNESS_MS,
  proofIdentities: "shown",
};
export const SESSION_ID = "ses_00abcdefghjkmnpqrstvwxyz01";
/** Of a later request. */
export const NEWER_ID = "ses_00abcdefghjkmnpqrstvwxyz02";
/** alice asks for bob. */
export const NAMED: GuideQuery = { from: "agent://alice", target_agent_id: "agent://bob" };

const WRITERS = {
  activationPlan,
  sessionRequestGuide,
  sessionRequestRefreshPacket,
  ecosystemHandoff,
  marketplaceFirstJobHandoff,
  marketplaceHandoffStatus,
};
export const GUIDE_IDS = Object.keys(WRITERS) as GuideId[];

/** All six guides of one situation, each held against its schema. */
export function written(
  source: WholeSource,
  query: GuideQuery = {},
  target: Target | null = null,
  settings: GuideSettings = SETTINGS,
): { readonly [Guide in GuideId]: ReturnType<(typeof WRITERS)[Guide]> } {
  const guides = GUIDE_IDS.map((id) => {
    const guide = WRITERS[id](guideContext(id, source, settings, query, target));
    return [id, SURFACES[id].response.parse(guide)];
  });
  return Object.fromEntries(guides);
}

/** bob, whom nobody has seen, with changes. */
export function targetOf(changes: Partial<Target> = {}): Target {
  const presence = presenceAfter(null);
  return { agent: "agent://bob", presence, lastOnlineProof: null, lastRequestAt: null, session: null, ...changes };
}

/** bob with a fresh proof and a session, of alice unless another is named. */
export function withSession(decision: TargetDecision, requester = "agent://alice"): Target {
  return targetOf({ ...PROVEN, session: sessionOf({ decision, requester }) });
}

/** A session of alice that reached bob, with changes. */
export function sessionOf(changes: Partial<TargetSession>): TargetSession {
  return {
    requester: "agent://alice",
    decision: "pending",
    createdAt: STARTED_AT,
    delivery: "online",
    isDisplaced: false,
    ...changes,
  };
}

/** Presence so many ms after the last heartbeat, at the start of the window. @param heldMs for how long it was held before. */
function presenceAfter(staleMs: number | null, heldMs: number | null = null, isCongested = false): Presence {
  const lastSeen = staleMs === null ? null : STARTED_AT;
  const heldSince = heldMs === null ? null : STARTED_AT - heldMs;
  return presenceOf(STARTED_AT + (staleMs ?? 0), lastSeen, heldSince, PRESENCE_LIMITS.offlineAfterMs, isCongested);
}

/** bob in each situation in which a target can be. */
export const AWAY = { stale: presenceAfter(60_000), offline: presenceAfter(400_000) };
export const ONLINE = presenceAfter(10, 0);
export const HELD = presenceAfter(14_000, PRESENCE_LIMITS.stabilityHoldMs);
export const CONGESTED = presenceAfter(14_000, PRESENCE_LIMITS.stabilityHoldMs, true);
export const PROVEN = { presence: ONLINE, lastOnlineProof: proofOf(), lastRequestAt: STARTED_AT };
