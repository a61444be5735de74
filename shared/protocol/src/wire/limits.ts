/**
 * All numbers that clients see. Unless the name says otherwise, durations are milliseconds, sizes are bytes, and
 * lengths are Unicode code points. Source: docs/protocol.md#limits.
 */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Signed envelopes: clock, size, depth and breadth. */
export const ENVELOPE_LIMITS = {
  maxClockSkewMs: 300_000,
  maxFrameBytes: 32_768,
  maxPayloadDepth: 32,
  /** Members and array elements in total, at any depth. */
  maxPayloadMembers: 2000,
  /**
   * Largest difference between the clocks of two pods. Beyond it the replay guard would forget an envelope too early.
   */
  podClockToleranceMs: MINUTE_MS,
} as const;

/** Texts in payloads and request bodies. `capabilities` and `acceptFrom` count items. */
export const TEXT_LIMITS = {
  message: 16_000,
  purpose: 500,
  intro: 1000,
  scope: 1000,
  expectedFrequency: 200,
  reason: 500,
  label: 120,
  /** A host name with a port. Source: RFC 1035, section 2.3.4. */
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
  /** Fragments of one text. */
  maxFragments: 1024,
  /** Share of an address's connections that may have no valid envelope yet. */
  unregisteredShare: 0.5,
  /**
   * Connections that one address may open per minute, as a multiple of the connections that it may have. All may
   * reconnect twice.
   */
  opensPerMinuteFactor: 2,
  opensWindowMs: MINUTE_MS,
  /** How long a client waits after a refusal by the connection limit. */
  capacityRetryAfterMs: 5000,
  /** Consecutive refusals after which the relay closes the connection. */
  maxRefusalsInARow: 20,
  /** How long refusals of a released agent do not count as consecutive refusals. */
  releaseGraceMs: MINUTE_MS,
  /** How long a registered client has to answer a close frame, unless its pod stops. */
  closeAnswerMs: 30_000,
  /**
   * Bytes that the relay reads of a connection after its close frame. After `closingGraceMs` it destroys the socket of
   * a client that never registered, or whose time for the answer is over.
   */
  closingBytes: 65_536,
  closingGraceMs: 1000,
  /**
   * The relay pings a client after this silence, and again after as long. The second value is how often it looks for
   * silent clients.
   */
  pingIntervalMs: 15_000,
  silenceCheckMs: 5000,
  /** Consecutive pings that may stay unanswered. */
  maxUnansweredPings: 2,
  /** Size of the token bucket of envelopes, in seconds of the allowed rate. */
  envelopeBurstSeconds: 5,
  /** Size of the token bucket of bytes, in seconds of the allowed rate. */
  byteBurstSeconds: 2,
  /**
   * Shares of RELAY_OUTBOX_BYTES that wait for a slow reader. Above the first the connection is congested, until below
   * the second.
   */
  outboxCongestedShare: 1 / 2,
  outboxClearedShare: 1 / 8,
  /**
   * Multiple of RELAY_OUTBOX_BYTES up to which deliveries may wait that were accepted before their connection was
   * marked congested.
   */
  outboxFullFactor: 4,
  /** How long an outbox may go without draining. */
  outboxStalledAfterMs: 10_000,
  /** Envelope rate of all connections of a key on a pod, as a multiple of one connection's rate. */
  keyShare: 4,
  /**
   * Byte rate of all connections of a key on a pod, as a multiple of one connection's rate. The burst is one
   * connection's burst.
   */
  keyBytesShare: 2,
  /**
   * The relay reads a connection over its own rate again after about this time at the latest. It also counts pauses
   * this often.
   */
  maxPauseMs: 1000,
  /** How long the rates may delay a heartbeat behind earlier envelopes of its sender. */
  maxBacklogMs: 4000,
  /**
   * The relay tells a client to slow down, once per window, if it paused the client for more than this share of the
   * window.
   */
  slowDownWindowMs: 10_000,
  slowDownShare: 0.5,
  /** Most bytes and frames of a connection before its first valid envelope. */
  unregisteredBytes: 65_536,
  unregisteredFrames: 8,
  /**
   * Most bytes of a registered connection before its text is complete, including control frames in between. Eight times
   * the largest text.
   */
  unfinishedBytes: 262_144,
  /** Share of a pod's event loop for all unregistered connections together. */
  unregisteredLoopShare: 0.1,
} as const;

/** Credentials, for agents whose keys are not listed. */
export const CREDENTIAL_LIMITS = {
  /** Characters of the token. */
  maxCharacters: 2048,
  /** From `iat` to `exp`. */
  maxLifeMs: 90 * 24 * HOUR_MS,
  /** Multiple of one key's bounds for an issuer: rates, pending sessions and opened sessions. */
  issuerFactor: 25,
  /** How far `iat` and `nbf` may be ahead of the relay's clock. */
  maxAheadMs: MINUTE_MS,
} as const;

/** Presence of agents. */
export const PRESENCE_LIMITS = {
  staleAfterMs: 45_000,
  criticalStaleAfterMs: 120_000,
  offlineAfterMs: 300_000,
  forgetAfterMs: 24 * HOUR_MS,
  stabilityHoldMs: 90_000,
  /** Deadline of the ack for a heartbeat of an agent that its connection owns, while Redis answers promptly. */
  heartbeatAckMs: 700,
} as const;

/** Sessions and their proofs. */
export const SESSION_LIMITS = {
  ttlMinutesMin: 5,
  ttlMinutesMax: 1440,
  ttlMinutesDefault: 60,
  /** How long a session can be looked up after its end. */
  keepAfterEndMs: HOUR_MS,
  maxPendingPerTarget: 100,
  maxPendingPerRequesterAtTarget: 10,
  /** Across all targets. */
  maxPendingPerPrincipal: 200,
  /** Sessions that one requester may open, across all targets. */
  openedPerMinute: 60,
  /** Sessions that all requesters of one principal may open. */
  openedPerMinuteOfPrincipal: 600,
  openedWindowMs: MINUTE_MS,
  /** Decisions kept for a requester that was not online, and for how long. */
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
  /** How long a client waits after a refusal that passes and names no other time, such as `unavailable`. */
  unavailableRetryAfterMs: 1000,
  /** Requests of one connection that wait for earlier answers. */
  waitingRequests: 16,
} as const;

/** History that the window keeps. */
export const WINDOW_LIMITS = {
  /**
   * A window younger than this says little about an agent that it has not seen: the agent may have been online before.
   */
  youngMs: 5 * MINUTE_MS,
  /** Minutes for which accepted envelopes are counted by minute. */
  minutes: 60,
  journeys: 200,
  actionsPerJourney: 50,
  /** Agents of one namespace key in the window. */
  agentsPerKey: 1000,
  /** Agents of one issuer in the window. */
  agentsPerIssuer: 10_000,
  /** How long a client waits after a refusal because Redis is short of memory. */
  memoryRetryAfterMs: 10_000,
} as const;

/**
 * Age of reports. An acknowledged event shows in every report after at most `maxBehindMs`. A count waits at most 100 ms
 * for its write (window/redis/redis-limits.ts). A report may use a read that was sent `keptReadMs` (250) ago. The other
 * 150 ms are for the way of write and read to Redis. Source: docs/protocol.md#counters.
 */
export const REPORT_LIMITS = {
  maxBehindMs: 500,
  keptReadMs: 250,
  /** Most targets with a kept read. */
  keptTargets: 1000,
} as const;

/** Gateway keys in the signing manifest. */
export const GATEWAY_KEY_LIMITS = {
  listedForMs: 15 * MINUTE_MS,
  refreshEveryMs: 30_000,
} as const;
