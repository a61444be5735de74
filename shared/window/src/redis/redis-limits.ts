/**
 * Limits of the services' calls to Redis. Every answer to a client is due within a second. Durations are milliseconds.
 */
export const REDIS_LIMITS = {
  commandTimeoutMs: 450,
  connectTimeoutMs: 2000,
  disconnectTimeoutMs: 100,
  /** How often each connection is checked for life, and Redis for its memory. */
  pingIntervalMs: 1000,
  /** Shares of maxmemory. Redis is short of memory from above the first until below the second. */
  memoryShortAbove: 0.75,
  memoryAmpleBelow: 0.7,
  /**
   * How often a pod sends itself a message over its channel. The pod gives the channel up when this many published
   * messages are missing, after at least 3 × 250 = 750 ms. While Redis does not answer, the pod keeps the channel.
   */
  loopbackIntervalMs: 250,
  maxMissedLoopbacks: 3,
  /** How long a pod waits for messages that were published before. */
  catchUpMs: 450,
  /**
   * With several partitions, each gets such a message every `partitionLoopbackMs`. It also renews the pod's lease
   * there. A lease that is older than `podLeaseMs` is over. But no lease ends after `podLeaseGapMs` without any
   * renewal, because the partition may be out of reach. It was out of reach if the gap is longer by
   * `partitionOutOfReachMs` than the renewing pod's own wait. Then all leases begin again. `partitionOutOfReachMs` is
   * longer than a call may take, so no pod takes its own delay for the partition's. A pod whose renewal was due when
   * the gap began is behind by less than `podLeaseMs`. Redis keeps leases for `podLeasesKeptMs` after the last renewal.
   */
  partitionLoopbackMs: 500,
  podLeaseMs: 2000,
  podLeaseGapMs: 750,
  partitionOutOfReachMs: 500,
  podLeasesKeptMs: 60_000,
  /**
   * Span of `ts` in one bucket of the replay guard. A cluster moves a slot key by key, and both primaries stand still
   * while a key moves. A bucket of a minute took 440 ms.
   */
  guardBucketMs: 5000,
  /** How often a process asks whether another window was opened. */
  windowFollowMs: 1000,
  /** How many windows one call may follow, if each is replaced in between, before the call is refused. */
  windowAttempts: 5,
  /** Longest pause between two attempts to connect while Redis is out of reach. */
  reconnectMaxMs: 500,
  /** Longest pause while Redis is in reach but unusable until an operator changes a setting. */
  misconfiguredRetryMaxMs: 5000,
  /** How often the slot map of a cluster is asked for, and how often while slots have no primary in reach. */
  slotMapMs: 5000,
  missingSlotsMs: 500,
  /**
   * How long a primary that is cut off from the others may answer before it refuses all. It gives the others up after
   * cluster-node-timeout (at most 5 s), or up to half as much again.
   */
  cutOffMs: 7500,
  /** After this time a primary that gave slots away knows that another primary has them. */
  handoverMs: 250,
  /** First pause before a call that a cluster did not serve is sent again. Each further pause is twice as long. */
  unservedPauseMs: 10,
  /** Redis 7.0 brought sharded pub/sub, which carries the deliveries. */
  oldestMajorVersion: 7,
  /**
   * How often a pod renews its shares of limits and its number of connections, and how long such a lease lasts. One
   * renewal may fail and the next may be late before other pods get the pod's part.
   */
  shareRenewMs: 1000,
  shareLeaseMs: 2500,
  /** How often a process writes the counters that it has gathered. */
  counterFlushMs: 100,
  /** How long a process holds counts that it cannot write. */
  countsHeldMs: 60_000,
  /**
   * Most envelopes of one acceptance call. Once their texts exceed `acceptanceBatchCharacters` (UTF-16 units), the call
   * takes no further envelope.
   */
  acceptanceBatch: 256,
  acceptanceBatchCharacters: 1_048_576,
  /**
   * How often a pod writes its gathered heartbeats. This wait, the wait of their texts before verification, and one
   * call fit in PRESENCE_LIMITS.heartbeatAckMs.
   */
  heartbeatGatherMs: 225,
  /**
   * Most routes of one call. With two credentials of the greatest length each, they have fewer characters than
   * `acceptanceBatchCharacters`.
   */
  routesBatch: 200,
  /**
   * Most agents of one key or issuer that an operator sees, the newest first. One call reads at most this many of a
   * partition.
   */
  agentsShown: 1000,
  /** Most visitors of one flush of the counters. */
  flushVisitors: 5000,
  /** Most agents that one call forgets, and how often pods look for such agents. */
  pruneBatch: 1000,
  pruneIntervalMs: 60_000,
} as const;
