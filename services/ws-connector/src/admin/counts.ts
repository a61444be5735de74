import { type AdminRoute, adminRoute } from "relay-runtime/admin/admin-server.ts";
import type { AuditLog } from "relay-runtime/audit-log.ts";
import type { PresenceStore } from "relay-window/presence/presence.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";
import { z } from "zod";
import type { AgentConnections } from "../agents/registrar.ts";
import type { OutboxBudget } from "../connection/outbox.ts";
import type { ConnectionRegistry } from "../connection/registry.ts";

export interface CountsParts {
  readonly pod: string;
  readonly window: ProcessWindow;
  readonly presenceStore: PresenceStore;
  readonly connections: ConnectionRegistry;
  readonly agentConnections: AgentConnections;
  readonly outboxBudget: OutboxBudget;
  readonly audit: AuditLog;
}

/** The process window, its agents by presence, and the counts of this pod. */
export function countsRoute(parts: CountsParts): AdminRoute {
  const { window, presenceStore, audit } = parts;
  return adminRoute("GET", "/admin/counts", z.strictObject({}), async () => {
    audit.write({ event: "admin_read", read: "counts" });
    const { missing, ok, stale, critical_stale, offline } = await presenceStore.count();
    const { id, startedAt } = window.current;
    return {
      window: { id, since: new Date(startedAt).toISOString() },
      agents: { online: ok, stale: stale + critical_stale, offline },
      unavailable_partitions: missing,
      pod: podCounts(parts),
    };
  });
}

function podCounts({ pod, connections, agentConnections, outboxBudget }: CountsParts): object {
  const registered = [...connections].filter(({ principal }) => principal !== undefined).length;
  return {
    id: pod,
    connections: connections.size,
    registered_connections: registered,
    agents: agentConnections.size,
    outbox_bytes: outboxBudget.bytes,
  };
}
