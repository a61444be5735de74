import { Health, Ready } from "../responses.ts";
import { get, type Surface } from "../surface.ts";

/** Probes that every service answers for itself. */
export const PROBE_SURFACES = {
  health: get({
    path: "/health",
    service: "each",
    group: "probes",
    summary: "The process answers.",
    response: Health,
    traffic: false,
  }),
  ready: get({
    path: "/ready",
    service: "each",
    group: "probes",
    summary: "The service can do its work; connector counts and the next action.",
    response: Ready,
    errors: ["unavailable"],
    traffic: false,
  }),
} as const satisfies Record<string, Surface>;
