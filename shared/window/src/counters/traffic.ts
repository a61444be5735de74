import { anonymousId } from "relay-runtime/anonymous-id.ts";
import type { OnAnswer } from "relay-runtime/http/router.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import type { Counters } from "./counters.ts";

/**
 * Counts each GET that a traffic surface answered with 200, check-online included, and adds it to the visitor's journey,
 * as it does each POST that succeeded. Only a hash of the visitor is kept, keyed by the window's salt. Without a window
 * nothing is counted. Source: docs/protocol.md#counters.
 */
export function countTraffic(counters: Counters, window: ProcessWindow): OnAnswer {
  return (surfaceId, surface, ctx) => {
    if (ctx.method !== surface.method || ctx.status !== surface.status) return;
    if (ctx.method === "GET" && !surface.traffic) return;
    const { ip } = ctx;
    const userAgent = ctx.get("User-Agent");
    const count = ({ salt }: { salt: string }) => {
      const visitor = anonymousId(salt, "visitor", ip, userAgent);
      if (surface.traffic) counters.view(surfaceId, visitor);
      else counters.act(surfaceId, visitor);
      if (surfaceId === "checkOnline") counters.count("onboarding_checks");
    };
    window.known().then(count, () => {});
  };
}
