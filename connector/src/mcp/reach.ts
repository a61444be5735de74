import { unlessAway } from "../unless-away.ts";
import type { AgentConnection } from "./agent-connection.ts";

/** A relay that restarts is back sooner; a model is told long before its client gives the call up. */
const AWAY_MS = 8000;

/** Runs what needs the relay. @param cancelled aborts it. */
export function reach<T>(
  connector: AgentConnection,
  cancelled: AbortSignal,
  call: (options: { signal: AbortSignal }) => Promise<T>,
): Promise<T> {
  return unlessAway(connector, AWAY_MS, (away) => call({ signal: AbortSignal.any([away, cancelled]) }));
}
