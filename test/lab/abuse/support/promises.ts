import { PRESENCE_LIMITS } from "relay-protocol/wire/limits.ts";
import type { Outcome } from "./outcome.ts";
import type { Figures } from "../samples.ts";

/** What others notice of an attack at most, ms. Source: docs/protocol.md#sharing-a-relay. */
export const BOUNDS = { ackP95: 250, heartbeatP95: PRESENCE_LIMITS.heartbeatAckMs, healthMax: 500 } as const;

const NAMES = { ackP95: "ack p95", heartbeatP95: "heartbeat p95", healthMax: "/health max" } as const;

/**
 * Every promise that an attack broke, in words.
 * @param allows refusals that bystanders may meet while the attack goes on.
 */
export function brokenBy({ during, after, lost, faults }: Outcome, allows: readonly string[] = []): string[] {
  const broken = [...noticed(during, "during", allows), ...noticed(after, "after", []), ...faults];
  return lost === 0 ? broken : [...broken, `${lost} acked in realtime did not arrive`];
}

function noticed(figures: Figures, when: string, allows: readonly string[]): string[] {
  const slow = (Object.keys(BOUNDS) as (keyof typeof BOUNDS)[])
    .filter((name) => figures[name] > BOUNDS[name])
    .map((name) => `${NAMES[name]} ${figures[name].toFixed(0)} ms ${when}`);
  const refused = Object.entries(figures.refused)
    .filter(([refusal]) => !allows.includes(refusal))
    .map(([refusal, times]) => `${refusal} ${times} × ${when}`);
  return [...slow, ...refused];
}
