import { PARTITION_TAGS } from "./partition-tags.ts";

/**
 * Every key and channel name of the relay, once. A hash tag names the slot that a key has on a Redis Cluster: all keys of a
 * partition lie in one, what is of the whole window in another, the control slot. One call takes keys of several slots, which
 * one Redis allows: reset_window, which opens the window in all of them. Source: docs/redis.md#keys.
 */

/** What every key of the relay begins with; the window reset refuses a database that holds others. */
export const KEY_PREFIX = "relay:";

const CONTROL_PREFIX = `${KEY_PREFIX}{0}:`;
const PARTITION_PREFIXES = PARTITION_TAGS.map((tag) => `${KEY_PREFIX}{${tag}}:`);

const inPartition = (partition: number, rest: string) => `${PARTITION_PREFIXES[partition]}${rest}`;

/** Keys of one partition. */
export const partitionKeys = {
  window: (p: number) => inPartition(p, "window"),
  /** Replay guard: digests of the envelopes whose `ts` lies in one minute. */
  seen: (p: number, minute: number) => inPartition(p, `seen:${minute}`),
  presence: (p: number) => inPartition(p, "presence"),
  online: (p: number) => inPartition(p, "online"),
  route: (p: number) => inPartition(p, "route"),
  /** Agents that one principal brought, where they are limited. */
  agents: (p: number, digest: string) => inPartition(p, `agents:${digest}`),
  /** The credentials that an agent registered with, by the ids of their keys. */
  credential: (p: number, agent: string) => inPartition(p, `credential:${agent}`),
  clock: (p: number) => inPartition(p, "clock"),
  session: (p: number, sessionId: string) => inPartition(p, `session:${sessionId}`),
  /** What is asked of one agent: its last proof and its pending sessions. */
  asked: (p: number, agent: string) => inPartition(p, `asked:${agent}`),
  /** What was decided of an agent's requests while it was not online. */
  decided: (p: number, agent: string) => inPartition(p, `decided:${agent}`),
  /** How many sessions a requester, an agent's id, or a principal, a digest, opened at targets of this partition, within a minute. */
  opened: (p: number, opener: string) => inPartition(p, `opened:${opener}`),
  /**
   * Sessions that a principal, a digest, or an agent of an issuer, its id, has pending at targets of this partition: the name
   * less what records carry.
   */
  principalPrefix: (p: number) => inPartition(p, "principal:"),
  principal: (p: number, holder: string) => inPartition(p, `principal:${holder}`),
  /** The pods that share a limit of one principal, a digest. */
  shares: (p: number, limit: string, digest: string) => inPartition(p, `shares:${limit}:${digest}`),
  /** The claim of an Idempotency-Key whose request was accepted in this partition. */
  idempotency: (p: number, digest: string) => inPartition(p, `idempotency:${digest}`),
  /** The body that an Idempotency-Key is bound to, in the partition of its digest. */
  idempotencyBody: (p: number, digest: string) => inPartition(p, `idempotency-body:${digest}`),
  /** Requests that one key or address made within a minute, where they are limited. */
  limit: (p: number, of: string) => inPartition(p, `limit:${of}`),
  counters: (p: number) => inPartition(p, "counters"),
  minutes: (p: number) => inPartition(p, "minutes"),
  proofs: (p: number) => inPartition(p, "proofs"),
  lastOnlineProof: (p: number) => inPartition(p, "last-online-proof"),
  /** A channel's name less the pod: the scripts append the pod that a route names. */
  podChannelPrefix: (p: number) => inPartition(p, "pod:"),
  podChannel: (p: number, pod: string) => inPartition(p, `pod:${pod}`),
} as const;

/** Keys of the whole window: which one it is, and what is counted for all partitions. */
export const controlKeys = {
  window: `${CONTROL_PREFIX}window`,
  traffic: `${CONTROL_PREFIX}traffic`,
  surfaces: `${CONTROL_PREFIX}surfaces`,
  visitors: `${CONTROL_PREFIX}visitors`,
  journeys: `${CONTROL_PREFIX}journeys`,
  journeysSeen: `${CONTROL_PREFIX}journeys-seen`,
  flushes: `${CONTROL_PREFIX}flushes`,
  feedback: `${CONTROL_PREFIX}feedback`,
  salt: `${CONTROL_PREFIX}salt`,
  gatewayKeys: `${CONTROL_PREFIX}gateway-keys`,
} as const;

/** What the reset leaves alone: the replay guard outlives a window. Source: docs/protocol.md#replay. */
export const REPLAY_GUARD_PATTERN = "^relay:{%w+}:seen:%d+$";
