import type { SessionProof } from "relay-window/sessions/session-records.ts";
import type { ReportSettings } from "../src/settings.ts";
import type { ReportPart, ReportSource } from "../src/window-reader.ts";

export const STARTED_AT = 1_790_000_000_000;
export const FRESHNESS_MS = 10_800_000;
export const SETTINGS: ReportSettings = {
  baseUrl: "https://relay.example",
  proofFreshnessMs: FRESHNESS_MS,
  proofIdentities: "shown",
};

/** Everything that a report can be computed from. */
export type WholeSource = ReportSource<ReportPart>;

/** A window in which nothing has happened, with changes. */
export function sourceOf(changes: Partial<WholeSource> = {}): WholeSource {
  return {
    now: STARTED_AT + 60_000,
    windowId: "win_test",
    windowStartedAt: STARTED_AT,
    deployId: "local",
    partitions: 1,
    missing: [],
    lostSince: new Map(),
    counters: new Map(),
    minutes: new Map(),
    traffic: new Map(),
    surfaces: new Map(),
    feedback: new Map(),
    presence: { ok: 0, stale: 0, critical_stale: 0, offline: 0 },
    visitors: 0,
    proofs: [],
    lastOnlineProof: null,
    journeys: [],
    gatewayKeys: [],
    connections: 0,
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
    samePrincipal: false,
    ...changes,
  };
}

/** Nobody used the gateway: two session requests over websockets, one of them to an agent that was online. */
const webSocketsOnly = sourceOf({
  presence: { ok: 1, stale: 0, critical_stale: 0, offline: 0 },
  counters: new Map([
    ["published_envelopes", 2],
    ["published_to_offline_target", 1],
    ["session_requests", 2],
    ["session_requests_to_online_target", 1],
  ]),
  proofs: [proofOf({ source: "websocket_envelope" }), proofOf({ source: "websocket_envelope", targetStatus: "stale" })],
  lastOnlineProof: proofOf({ source: "websocket_envelope" }),
});

/** Windows that every report is computed from. */
export const WINDOWS = {
  empty: sourceOf(),
  connectorsStale: sourceOf({ presence: { ok: 0, stale: 2, critical_stale: 1, offline: 4 } }),
  connectorOnline: sourceOf({ presence: { ok: 2, stale: 1, critical_stale: 0, offline: 0 } }),
  offlineOnly: sourceOf({
    presence: { ok: 0, stale: 1, critical_stale: 0, offline: 0 },
    counters: sessionCounters(0, 5),
    proofs: Array.from({ length: 5 }, () => proofOf({ targetStatus: "stale" })),
  }),
  proofFresh: provenAt(STARTED_AT + FRESHNESS_MS),
  proofStale: provenAt(STARTED_AT + FRESHNESS_MS + 1),
  proofFreshNobodyOnline: { ...provenAt(STARTED_AT + FRESHNESS_MS), presence: sourceOf().presence },
  webSocketsOnly,
  busy: sourceOf({
    visitors: 100,
    traffic: new Map([["surface_views", 900]]),
    presence: { ok: 20, stale: 20, critical_stale: 10, offline: 10 },
    counters: new Map([...sessionCounters(6, 4), ["published_envelopes", 40], ["published_to_offline_target", 22]]),
    feedback: new Map([
      ["total", 5],
      ["category:docs", 2],
      ["category:smoke_check", 3],
    ]),
    proofs: [proofOf()],
    lastOnlineProof: proofOf(),
  }),
} as const;

/** One online-target proof, accepted when the window began, with agents online. */
function provenAt(now: number): WholeSource {
  const proof = proofOf();
  const presence = { ok: 1, stale: 0, critical_stale: 0, offline: 0 };
  return sourceOf({ now, presence, counters: sessionCounters(1, 0), proofs: [proof], lastOnlineProof: proof });
}

/** The numbers that a text shows, in order: tests check these, not the words around them. */
export function numbersIn(text: string): number[] {
  return (text.match(/\d+/g) ?? []).map(Number);
}

function sessionCounters(toOnline: number, toOffline: number): Map<string, number> {
  return new Map([
    ["published_envelopes", toOnline + toOffline],
    ["published_to_offline_target", toOffline],
    ["session_requests", toOnline + toOffline],
    ["session_requests_to_online_target", toOnline],
    ["simple_session_request_accepted", toOnline + toOffline],
    ["simple_session_request_accepted_to_online_target", toOnline],
    ["simple_session_request_accepted_to_offline_target", toOffline],
  ]);
}
