import { WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import type { PresenceCounts } from "../presence/presence.ts";
import type { WindowIdentity } from "./window-identity.ts";

/** Of the window: when it began, and the present time, both Unix ms. */
export interface WindowTimes {
  readonly now: number;
  readonly windowStartedAt: number;
}

/** By the clock of this process, which is near enough to the one of Redis to tell young windows from old ones. */
export function timesOf({ startedAt }: WindowIdentity): WindowTimes {
  return { now: Date.now(), windowStartedAt: startedAt };
}

/** When a young window began, to the second; null of an older one. A young one says little of who was not seen in it. Pure. */
export function youngSince({ now, windowStartedAt }: WindowTimes): string | null {
  if (now - windowStartedAt >= WINDOW_LIMITS.youngMs) return null;
  return new Date(windowStartedAt).toISOString().replace(/\.\d+/, "");
}

/** The time in which somebody was not seen, in words. Pure. */
export function inWindow(times: WindowTimes): string {
  const since = youngSince(times);
  return since === null ? "in this window" : `since this window began at ${since}`;
}

/** What to do about the connectors, by their counts. @param connections of all pods. */
export function fleetAdvice(counts: PresenceCounts, times: WindowTimes, connections = 0): string {
  if (counts.ok > 0) return "Check your target with /api/onboarding/check-online, then request a session.";
  if (connections > 0) {
    return "Connections exist, but no agent is online: the connected client is not refreshing a valid presence row. It must send a signed agent.register, then agent.heartbeat every 15 seconds.";
  }
  if (counts.stale + counts.critical_stale + counts.offline > 0) {
    return "No agent is online: connected clients must send a signed agent.heartbeat at least every 30 seconds.";
  }
  return `No agent was seen ${inWindow(times)}: connect a connector and send a signed agent.register.`;
}
