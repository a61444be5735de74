import type { Counters } from "../window/counters.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { anonymousId } from "../window/visitors.ts";
import type { OnAnswer } from "./router.ts";

/**
 * Counts each GET that a traffic surface answered 200, the check-online answers among them, and notes it in the visitor's
 * journey, as it does each POST that was answered well. Of the visitor only a hash is kept, keyed by the window's salt.
 * Without a window there is nothing to count in. Source: protocol, section 10.
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
