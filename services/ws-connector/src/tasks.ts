import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import { FILE_TIMES } from "relay-runtime/files.ts";
import { leaseConnections } from "relay-window/channel/pod-channel.ts";
import { RELEASE_RETRY_MS } from "relay-window/presence/routes.ts";
import { REDIS_LIMITS } from "relay-window/redis/redis-limits.ts";
import type { PodAgents } from "./agents/agents.ts";
import type { Revocation } from "./agents/revocation.ts";
import type { RouteRestoring } from "./agents/route-restoring.ts";
import { OUTBOX_CHECK_MS, type OutboxBudget } from "./connection/outbox.ts";
import type { ConnectionRegistry } from "./connection/registry.ts";
import { DECISION_REPEAT_MS, type DecisionRepeats } from "./intake/decision-repeats.ts";
import type { PodRedis } from "./pod-redis.ts";
import type { ConnectionQuota } from "./throttle/connection-quota.ts";
import { ShareLeases } from "./throttle/rates.ts";

export interface TaskParts extends PodAgents {
  readonly redis: PodRedis;
  readonly connections: ConnectionRegistry;
  readonly quota: ConnectionQuota;
  readonly outboxBudget: OutboxBudget;
  readonly revocation: Revocation;
  readonly restoring: RouteRestoring;
  readonly decisionRepeats: DecisionRepeats;
}

const MINUTE_MS = 60_000;

/** What a pod does at intervals, from `start` to `stop`. */
export function createTasks({ redis, connections, quota, outboxBudget, ...parts }: TaskParts) {
  const { link, pod, shares, releaser, presenceStore } = redis;
  const shareLeases = new ShareLeases(shares, connections.rates);
  /** The interval in ms, and what runs then. A promise that it returns never rejects. */
  const tasks: readonly (readonly [everyMs: number, run: () => unknown])[] = [
    [FILE_TIMES.pollMs, () => parts.revocation.checkExpiry()],
    [CONNECTION_LIMITS.silenceCheckMs, () => connections.checkSilence()],
    [CONNECTION_LIMITS.opensWindowMs, () => quota.forgetClosed(performance.now())],
    [OUTBOX_CHECK_MS, () => outboxBudget.check()],
    [MINUTE_MS, () => connections.endMinute(performance.now())],
    [RELEASE_RETRY_MS, () => releaser.flush()],
    [RELEASE_RETRY_MS, () => parts.congestion.flush()],
    [DECISION_REPEAT_MS, () => parts.decisionRepeats.flush(performance.now())],
    [REDIS_LIMITS.loopbackIntervalMs, () => parts.restoring.flush()],
    [REDIS_LIMITS.heartbeatGatherMs, () => parts.heartbeats.flush()],
    [REDIS_LIMITS.shareRenewMs, () => shareLeases.renew()],
    [REDIS_LIMITS.shareRenewMs, () => leaseConnections(link, pod, connections.size).catch(() => {})],
    [REDIS_LIMITS.pruneIntervalMs, () => presenceStore.prune().catch(() => {})],
  ];
  let timers: readonly NodeJS.Timeout[] = [];
  return {
    start(): void {
      timers = tasks.map(([everyMs, run]) => setInterval(run, everyMs));
    },
    stop(): void {
      for (const timer of timers) clearInterval(timer);
    },
  };
}
