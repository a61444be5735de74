import type { AuditLog } from "relay-runtime/audit-log.ts";
import type { Logger } from "relay-runtime/logging.ts";
import type { PodRedis } from "../pod-redis.ts";
import type { Authority } from "./authority.ts";
import { CongestionNotices } from "./congestion.ts";
import { Heartbeats, IntakeBatch } from "./heartbeats.ts";
import { AgentConnections, Registrar } from "./registrar.ts";

export type PodAgents = ReturnType<typeof createAgents>;

/** Who has which agent on this pod: registers and takeovers, gathered heartbeats, and congested routes. */
export function createAgents(
  { channel, releaser, heartbeatWriter, congestionMarks }: PodRedis,
  { authority, audit, logger }: { readonly authority: Authority; readonly audit: AuditLog; readonly logger: Logger },
) {
  const heartbeats = new Heartbeats({ writer: heartbeatWriter, channel, logger });
  const batch = new IntakeBatch({ logger });
  const agentConnections = new AgentConnections();
  const registrar = new Registrar({ authority, channel, releaser, heartbeats, batch, agentConnections, audit });
  return { heartbeats, batch, agentConnections, registrar, congestion: new CongestionNotices(congestionMarks) };
}
