import { Health, Ready } from "../responses.ts";
import { get, type Surface } from "../surface.ts";

/** Probes that every service answers for itself. */
export const PROBE_SURFACES = {
  health: get({
    path: "/health",
    service: "each",
    group: "probes",
    summary: "Whether the process runs.",
    response: Health,
    traffic: false,
  }),
  ready: get({
    path: "/ready",
    service: "each",
    group: "probes",
    summary: "Whether the service is ready; counts of agents and the next action.",
    response: Ready,
    errors: ["not_ready"],
    traffic: false,
  }),
} as const satisfies Record<string, Surface>;
