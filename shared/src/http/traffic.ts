import type { Counters } from "../window/counters.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { anonymousId } from "../window/visitors.ts";
import type { OnAnswer } from "./router.ts";

/**
 * Counts each GET that a traffic surface answered 200, and the check-online answers among them. Of the visitor only a
 * hash is kept, keyed by the window's salt. Without a window there is nothing to count in. Source: protocol, section 10.
 */
export function countTraffic(counters: Counters, window: ProcessWindow): OnAnswer {
  return (surfaceId, surface, ctx) => {
    if (!surface.traffic || ctx.method !== "GET" || ctx.status !== 200) return;
    const { ip } = ctx;
    const userAgent = ctx.get("User-Agent");
    const count = ({ salt }: { salt: string }) => {
      counters.view(surfaceId, anonymousId(salt, "visitor", ip, userAgent));
      if (surfaceId === "checkOnline") counters.count("onboarding_checks");
    };
    window.known().then(count, () => {});
  };
}
