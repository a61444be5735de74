import { AdminKey } from "relay-runtime/admin/admin-key.ts";
import { AdminServer } from "relay-runtime/admin/admin-server.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { PrincipalAgentsReader } from "relay-window/limits/principal-agents.ts";
import type { WsConnectorSettings } from "../settings.ts";
import { type AgentsParts, agentsRoute } from "./agents.ts";
import { type CountsParts, countsRoute } from "./counts.ts";
import { type DisconnectParts, disconnectRoute } from "./disconnect.ts";
import { type NoisiestParts, noisiestRoute } from "./noisiest.ts";

type RouteParts = Omit<AgentsParts, "agents"> &
  CountsParts &
  DisconnectParts &
  Omit<NoisiestParts, "rates" | "startedAt">;

export type AdminParts = RouteParts & { readonly settings: WsConnectorSettings; readonly logger: Logger };

/** The admin listener of a pod. Undefined if the pod has none. Source: docs/operations.md#admin. */
export function createAdmin(parts: AdminParts): AdminServer | undefined {
  const { settings, link, window, connections, audit, logger } = parts;
  const { adminPort: port, adminHost: host, adminKeyFile: path, offlineAfterMs } = settings;
  if (port === undefined || path === undefined) return undefined;
  if (!audit.isKept) logger.warn("ADMIN_PORT without RELAY_AUDIT_FILE: what the operator does is written nowhere");
  const agents = new PrincipalAgentsReader({ link, window, offlineAfterMs });
  return new AdminServer({
    ...{ port, host, logger },
    key: new AdminKey({ path, logger }),
    routes: [
      countsRoute(parts),
      agentsRoute({ ...parts, agents }),
      disconnectRoute(parts),
      noisiestRoute({ ...parts, rates: connections.rates, startedAt: Date.now() }),
    ],
    refused: () => audit.adminRefused(),
  });
}
