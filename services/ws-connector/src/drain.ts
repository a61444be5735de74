import { setTimeout as delay } from "node:timers/promises";
import type { Connection } from "./connection.ts";
import { drainingNotice } from "./frames.ts";

/** Between two closes while there is time, so that the other pods are not met by all clients at once. */
const PACE_MS = 5;
const RECONNECT_MIN_MS = 100;
const RECONNECT_SPREAD_MS = 900;

/**
 * Sends every client elsewhere: first the notice, then the closes, spread over at most `drainMs`. Deliveries go on until
 * a connection's own close. Source: pitfalls, "Reconnect storms".
 * @param dismiss ends one connection.
 */
export async function drain(
  connections: ReadonlyMap<string, Connection>,
  drainMs: number,
  dismiss: (connection: Connection) => Promise<void>,
): Promise<void> {
  const leaving = [...connections.values()];
  for (const connection of leaving) {
    connection.send(drainingNotice(RECONNECT_MIN_MS + Math.floor(Math.random() * RECONNECT_SPREAD_MS)));
  }
  const startedAt = performance.now();
  const dismissals: Promise<void>[] = [];
  const span = Math.min(drainMs, leaving.length * PACE_MS);
  for (const [index, connection] of leaving.entries()) {
    const waitMs = startedAt + (index * span) / leaving.length - performance.now();
    if (waitMs > 0) await delay(waitMs);
    dismissals.push(dismiss(connection));
  }
  await Promise.all(dismissals);
}
