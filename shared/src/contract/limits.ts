/**
 * Every number of the contract, once. Durations are milliseconds, sizes are bytes, lengths are UTF-16 characters,
 * unless the name says otherwise. Source: the contract, "Limits", and the protocol, sections 2, 4–9.
 */

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** Signed envelopes: their clock, their size, their depth. */
export const ENVELOPE_LIMITS = {
  maxClockSkewMs: 300_000,
  maxFrameBytes: 32_768,
  maxPayloadDepth: 32,
  /** How much the clocks of two pods may differ before the replay guard would forget too early. */
  podClockToleranceMs: MINUTE_MS,
} as const;

/** Texts in payloads and request bodies. */
export const TEXT_LIMITS = {
  message: 16_000,
  purpose: 500,
  intro: 1000,
  scope: 1000,
  expectedFrequency: 200,
  reason: 500,
  label: 120,
  taskId: 128,
  capabilities: 32,
} as const;

/** Connections of the websocket. */
export const CONNECTION_LIMITS = {
  heartbeatIntervalMs: 15_000,
  heartbeatMaxMs: 30_000,
  registerWithinMs: 10_000,
  maxAgentsPerConnection: 100,
  /** Of the connections that one address may have, how many may be without a valid envelope. */
  unregisteredShare: 0.5,
  /** How many times that number one address may open in a minute: enough for all to come back twice. */
  opensPerMinuteFactor: 2,
  opensWindowMs: MINUTE_MS,
  /** What a client waits that was turned away for want of room. */
  capacityRetryAfterMs: 5000,
  /** Refusals in a row after which the connection is closed. */
  maxRefusalsInARow: 20,
  pingIntervalMs: 15_000,
  /** Pings in a row that may stay unanswered. */
  maxUnansweredPings: 2,
  /** Tokens of the envelope bucket for each envelope a second allowed. */
  envelopeBurstSeconds: 5,
} as const;

/** Presence of connectors. */
export const PRESENCE_LIMITS = {
  staleAfterMs: 45_000,
  criticalStaleAfterMs: 120_000,
  offlineAfterMs: 300_000,
  forgetAfterMs: 24 * HOUR_MS,
  stabilityHoldMs: 90_000,
} as const;

/** Sessions and their proofs. */
export const SESSION_LIMITS = {
  ttlMinutesMin: 5,
  ttlMinutesMax: 1440,
  ttlMinutesDefault: 60,
  /** How long a session can still be looked up after its end. */
  keepAfterEndMs: HOUR_MS,
  maxPendingPerTarget: 100,
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
  /** What a client waits when Redis is out of reach. */
  unavailableRetryAfterMs: 1000,
} as const;

/** What the window remembers of its course. */
export const WINDOW_LIMITS = {
  /** Minutes for which accepted envelopes are counted one by one. */
  minutes: 60,
  journeys: 200,
  actionsPerJourney: 50,
} as const;

/** Gateway keys in the signing manifest. */
export const GATEWAY_KEY_LIMITS = {
  listedForMs: 15 * MINUTE_MS,
  refreshEveryMs: 30_000,
} as const;

/** How services talk to Redis. Every answer to a client is due within a second. */
export const REDIS_LIMITS = {
  commandTimeoutMs: 450,
  connectTimeoutMs: 2000,
  disconnectTimeoutMs: 100,
  /** How often each connection is asked whether it lives. */
  pingIntervalMs: 1000,
  /**
   * How often a pod sends itself a message over its channel, and how many may be missing. Together longer than it takes
   * to notice that all of Redis is silent: interval and command timeout.
   */
  loopbackIntervalMs: 250,
  maxMissedLoopbacks: 3,
  reconnectMaxMs: 500,
  /** Counters are gathered in the process and written this often. */
  counterFlushMs: 100,
  /** Envelopes that one acceptance call carries at most. */
  acceptanceBatch: 256,
  acceptanceBatchBytes: 1_048_576,
  /** Visitors that one flush of the counters carries at most. */
  flushVisitors: 5000,
  /** Agents that one call forgets at most, and how often connectors look for such. */
  pruneBatch: 1000,
  pruneIntervalMs: 60_000,
} as const;

/** How often the keys file is looked at; a change is in force within 5 s. */
export const KEYS_FILE_POLL_MS = 1000;
