import type { ServiceName } from "relay-protocol/contract/surface.ts";
import type { Handler } from "./router.ts";

/** Handler of /health: the process answers. Nothing is asked of Redis, so that its loss restarts nobody. */
export function healthHandler(service: ServiceName): Handler<"health"> {
  return () => ({ ok: true, service, status: "healthy" });
}
