import { ServiceError } from "relay-protocol/contract/refusals.ts";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import type { Handler } from "relay-runtime/http/router.ts";
import { type ReadinessSources, readReadiness } from "./readiness.ts";

/**
 * Handler of /ready: 200 when Redis answers in a known window, and the pod's own channel where it has one; else a problem
 * document that has the same members.
 */
export function readyHandler(service: ServiceName, sources: ReadinessSources): Handler<"ready"> {
  return async () => {
    const state = await readReadiness(service, sources);
    if (!state.ready) throw new ServiceError("not_ready", { members: state });
    return state;
  };
}
