/**
 * Every number that clients see. Durations are milliseconds, sizes are bytes, lengths are Unicode code points, unless the
 * name says otherwise. Source: docs/protocol.md#limits.
 */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Signed envelopes: their clock, their size, their depth and breadth. */
export const ENVELOPE_LIMITS = {
  maxClockSkewMs: 300_000,
  maxFrameBytes: 32_768,
  maxPayloadDepth: 32,
  /** Members and array elements in total, at any depth. */
  maxPayloadMembers: 2000,
  /** How much the clocks of two pods may differ: by more, and the replay guard would forget an envelope too early. */
  podClockToleranceMs: MINUTE_MS,
} as const;

/** Texts in payloads and request bodies; of `capabilities` and `acceptFrom` the number of items. */
export const TEXT_LIMITS = {
  message: 16_000,
  purpose: 500,
  intro: 1000,
  scope: 1000,
  expectedFrequency: 200,
  reason: 500,
  label: 120,
  /** A host name with a port. RFC 1035, section 2.3.4. */
  relay: 261,
  taskId: 128,
  capabilities: 32,
  acceptFrom: 50,
} as const;

/** Websocket connections. */
export const CONNECTION_LIMITS = {
  heartbeatIntervalMs: 15_000,
  heartbeatMaxMs: 30_000,
  registerWithinMs: 10_000,
  maxAgentsPerConnection: 100,
  /** Of a text. */
  maxFragments: 1024,
  /** Share of the connections of one address that may be without a valid envelope. */
  unregisteredShare: 0.5,
  /** Connections that one address may open per minute, as a multiple of those it may have: all may reconnect twice. */
  opensPerMinuteFactor: 2,
  opensWindowMs: MINUTE_MS,
  /** How long a client waits that was refused because the connection limit was reached. */
  capacityRetryAfterMs: 5000,
  /** Consecutive refusals after which the connection is closed. */
  maxRefusalsInARow: 20,
  /** For how long refusals of an agent that was released do not count towards them. */
  releaseGraceMs: MINUTE_MS,
  /** How long a registered client has to answer a close frame, where its pod does not stop. */
  closeAnswerMs: 30_000,
  /** What is read of a connection behind its close frame, and how long its client has where it never registered, or had its time. */
  closingBytes: 65_536,
  closingGraceMs: 1000,
  /** A client that was silent for so long is pinged, and again after as long; and how often it is looked at. */
  pingIntervalMs: 15_000,
  silenceCheckMs: 5000,
  /** Consecutive pings that may stay unanswered. */
  maxUnansweredPings: 2,
  /** Size of the token bucket, in seconds of the allowed rate of envelopes. */
  envelopeBurstSeconds: 5,
  /** The same, of the allowed rate of bytes. */
  byteBurstSeconds: 2,
  /** What waits for a slow reader, as shares of RELAY_OUTBOX_BYTES: above which it is congested, and until which it stays so. */
  outboxCongestedShare: 1 / 2,
  outboxClearedShare: 1 / 8,
  /** How many times RELAY_OUTBOX_BYTES what was accepted before its connection was marked congested may come to. */
  outboxFullFactor: 4,
  /** How long nothing of an outbox may drain. */
  outboxStalledAfterMs: 10_000,
  /** Rate of envelopes of all connections of a key on a pod, as a multiple of that of one connection. */
  keyShare: 4,
  /** The same, of bytes. The burst is that of one connection. */
  keyBytesShare: 2,
  /** A connection over a rate of its own is read again after about this time at the latest; pauses are counted this often. */
  maxPauseMs: 1000,
  /** How long a heartbeat may wait, by the rates, behind what its sender sent before it. */
  maxBacklogMs: 4000,
  /** A client is told to slow down, once in this window, when it was paused for more than this share of it. */
  slowDownWindowMs: 10_000,
  slowDownShare: 0.5,
  /** What a connection may send before its first valid envelope. */
  unregisteredBytes: 65_536,
  unregisteredFrames: 8,
  /** What a registered one may send before its text is whole, control frames in between included: eight times the largest text. */
  unfinishedBytes: 262_144,
  /** Share of a pod's event loop that all unregistered connections together may take. */
  unregisteredLoopShare: 0.1,
} as const;

/** Credentials, by which agents register whose keys are not listed. */
export const CREDENTIAL_LIMITS = {
  /** Of the token. */
  maxCharacters: 2048,
  /** From `iat` to `exp`. */
  maxLifeMs: 90 * 24 * HOUR_MS,
  /** How many times the bounds of a key hold for an issuer: rates, sessions that pend, sessions that are opened. */
  issuerFactor: 25,
  /** How far `iat` and `nbf` may lie ahead of the judge's clock. */
  maxAheadMs: MINUTE_MS,
} as const;

/** Presence of connectors. */
export const PRESENCE_LIMITS = {
  staleAfterMs: 45_000,
  criticalStaleAfterMs: 120_000,
  offlineAfterMs: 300_000,
  forgetAfterMs: 24 * HOUR_MS,
  stabilityHoldMs: 90_000,
  /** By when a heartbeat of an agent that its connection owns is acked, while Redis answers promptly. */
  heartbeatAckMs: 700,
} as const;

/** Sessions and their proofs. */
export const SESSION_LIMITS = {
  ttlMinutesMin: 5,
  ttlMinutesMax: 1440,
  ttlMinutesDefault: 60,
  /** How long a session can be looked up after it ended. */
  keepAfterEndMs: HOUR_MS,
  maxPendingPerTarget: 100,
  maxPendingPerRequesterAtTarget: 10,
  /** Over all targets. */
  maxPendingPerPrincipal: 200,
  /** Sessions that one requester may open, over all targets. */
  openedPerMinute: 60,
  /** Those of all requesters of one principal. */
  openedPerMinuteOfPrincipal: 600,
  openedWindowMs: MINUTE_MS,
  /** Decisions that are kept for a requester who was not online, and for how long. */
  maxDecidedKept: 100,
  decidedKeptMs: HOUR_MS,
  retainedProofs: 25,
  proofFreshnessMs: 10_800_000,
} as const;

/** The HTTP surfaces. */
export const HTTP_LIMITS = {
  maxBodyBytes: 32_768,
  gatewayRequestsPerMinute: 30,
  failedKeysPerMinute: 60,
  publicRequestsPerMinute: 600,
  idempotencyKeyCharacters: 128,
  idempotencyMs: 600_000,
  /** How long a client waits when Redis is not reachable. */
  unavailableRetryAfterMs: 1000,
  /** Requests of one connection that wait for the answers before theirs. */
  waitingRequests: 16,
} as const;

/** What the window keeps of its history. */
export const WINDOW_LIMITS = {
  /** For how long whoever was not seen yet may have been there before the window began. */
  youngMs: 5 * MINUTE_MS,
  /** Number of minutes for which accepted envelopes are counted by minute. */
  minutes: 60,
  journeys: 200,
  actionsPerJourney: 50,
  /** Agents of one namespace key that the window holds. */
  agentsPerKey: 1000,
  /** Agents of one issuer that the window holds. */
  agentsPerIssuer: 10_000,
  /** How long a client waits that was refused because Redis is short of memory. */
  memoryRetryAfterMs: 10_000,
} as const;

/**
 * How old a report may be. What was acknowledged shows in every report `maxBehindMs` later at the latest: a count waits
 * at most 100 ms for its write (window/redis/limits.ts), a report may be made of a read that was sent `keptReadMs` (250)
 * ago, and the remaining 150 are for the write's and the read's way to Redis. Source: docs/protocol.md#counters.
 */
export const REPORT_LIMITS = {
  maxBehindMs: 500,
  keptReadMs: 250,
  /** Targets of which a read is kept. */
  keptTargets: 1000,
} as const;

/** Gateway keys in the signing manifest. */
export const GATEWAY_KEY_LIMITS = {
  listedForMs: 15 * MINUTE_MS,
  refreshEveryMs: 30_000,
} as const;
