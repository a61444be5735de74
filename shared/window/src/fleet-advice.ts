import type { PresenceCounts } from "./presence.ts";

/** What to do about the connectors, by their counts. @param connections websockets of this process, where it has some. */
export function fleetAdvice(counts: PresenceCounts, connections = 0): string {
  if (counts.ok > 0) return "Check your target with /api/onboarding/check-online, then request a session.";
  if (connections > 0) {
    return "Connections exist, but no agent is online: the connected client is not refreshing a valid presence row. It must send a signed agent.register, then agent.heartbeat every 15 seconds.";
  }
  if (counts.stale + counts.critical_stale + counts.offline > 0) {
    return "No agent is online: connected clients must send a signed agent.heartbeat at least every 30 seconds.";
  }
  return "No agent was seen in this window: connect a connector and send a signed agent.register.";
}
