/** How services talk to Redis. Every answer to a client is due within a second. Durations are milliseconds. */
export const REDIS_LIMITS = {
  commandTimeoutMs: 450,
  connectTimeoutMs: 2000,
  disconnectTimeoutMs: 100,
  /** How often each connection is asked whether it lives, and how full Redis is. */
  pingIntervalMs: 1000,
  /** Shares of maxmemory: above the first Redis is short of memory, until it is below the second. */
  memoryShortAbove: 0.75,
  memoryAmpleBelow: 0.7,
  /**
   * How often a pod sends itself a message over its channel, and how many of those that Redis says it has published may be missing
   * before it gives the channel up: none came back for 3 × 250 = 750 ms, or longer. While Redis says nothing, it keeps the channel.
   */
  loopbackIntervalMs: 250,
  maxMissedLoopbacks: 3,
  /** How long a pod waits for what was published before. */
  catchUpMs: 450,
  /**
   * Of several partitions each has such a message this often, with which the pod renews its lease there. An older lease is over, but
   * in a gap without any renewal: the partition may be away. It was, and all leases begin anew, when the gap was longer by that much
   * than whoever renews next waited itself: more than a call may take, so that no pod takes its own delay for the partition's. A pod
   * whose renewal was due when the gap began has an older lease by less than a lease. Leases are kept for a while after the last renewal.
   */
  partitionLoopbackMs: 500,
  podLeaseMs: 2000,
  podLeaseGapMs: 750,
  partitionSilenceMs: 500,
  podLeasesKeptMs: 60_000,
  /**
   * Span of `ts` of one bucket of the replay guard. A cluster moves a slot key by key, and both primaries stand still meanwhile: for
   * 440 ms where one was of a minute.
   */
  guardBucketMs: 5000,
  /** How often a process asks whether another window was opened. */
  windowFollowMs: 1000,
  /** How often a window that was replaced meanwhile is followed by the next one, before that is refused. */
  windowAttempts: 5,
  /** The longest pause between two attempts to connect while Redis is away. */
  reconnectMaxMs: 500,
  /** The same while Redis is there but cannot be used until somebody changes a setting. */
  misconfiguredRetryMaxMs: 5000,
  /** How often the slot map of a cluster is asked for, and how often while a primary is missing. */
  slotMapMs: 5000,
  missingSlotsMs: 500,
  /**
   * For so long a primary that is cut off from the others may have answered before it refuses: it gives them up after
   * cluster-node-timeout, 5 s where it is longest, or up to half as much again.
   */
  unheardMs: 7500,
  /** By then a primary that gave slots away knows that another one has them. */
  handoverMs: 250,
  /** The first pause before a call that a cluster did not serve is sent again; each further one is twice as long. */
  unservedPauseMs: 10,
  /** Sharded pub/sub, which carries the deliveries, came with Redis 7.0. */
  oldestMajorVersion: 7,
  /**
   * How often a pod renews its shares of limits and tells how many connections it has, and how long such a lease lasts: one renewal
   * may fail, and the next be late, before the other pods have its part.
   */
  shareRenewMs: 1000,
  shareLeaseMs: 2500,
  /** Counters are gathered in the process and written this often. */
  counterFlushMs: 100,
  /** How long counts that cannot be written are held. */
  countsHeldMs: 60_000,
  /** Envelopes that one acceptance call carries at most. */
  acceptanceBatch: 256,
  acceptanceBatchBytes: 1_048_576,
  /**
   * How often the heartbeats that a pod has gathered are written: none waits longer. That, what their texts wait before, and one call
   * fit in PRESENCE_LIMITS.heartbeatAckMs.
   */
  heartbeatGatherMs: 225,
  /** Routes that one call is about at most: with two credentials of each agent, the longest there are, it has fewer bytes than that. */
  routesBatch: 200,
  /** Agents of one key or issuer that an operator is shown, the newest, and that one call reads of a partition. */
  agentsShown: 1000,
  /** Visitors that one flush of the counters carries at most. */
  flushVisitors: 5000,
  /** Agents that one call forgets at most, and how often connectors look for such. */
  pruneBatch: 1000,
  pruneIntervalMs: 60_000,
} as const;
