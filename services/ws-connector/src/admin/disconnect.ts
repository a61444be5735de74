import { AgentId } from "relay-protocol/contract/envelope.ts";
import { AdminError, type AdminRoute, adminRoute } from "relay-runtime/admin/admin-server.ts";
import type { AuditLog } from "relay-runtime/audit-log.ts";
import { disconnect } from "relay-window/presence/routes.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import type { ProcessWindow } from "relay-window/window/process-window.ts";
import { z } from "zod";

export interface DisconnectParts {
  readonly link: RedisCalls;
  readonly window: ProcessWindow;
  readonly audit: AuditLog;
}

/** Closes the connection of an agent, on any pod. This is no ban: the agent's connector comes back. */
export function disconnectRoute({ link, window, audit }: DisconnectParts): AdminRoute {
  return adminRoute("POST", "/admin/disconnect", z.strictObject({ agent: AgentId }), async ({ agent }) => {
    const told = (outcome: string) => audit.write({ event: "admin_disconnect", agent, outcome });
    const isDisconnected = await disconnect(link, window, agent).catch((error: unknown) => {
      told("unavailable");
      throw error;
    });
    told(isDisconnected ? "disconnected" : "not_connected");
    if (!isDisconnected) throw new AdminError("not_connected");
    return { agent, disconnected: true };
  });
}
