import type { Connector } from "../../connector.ts";
import { RelayError } from "../../errors.ts";

/** Whoever waits at a prompt is told within 3 s; connections that are replaced are back sooner, as a rule. */
const AWAY_MS = 2000;

/**
 * Runs a call of the connector, and ends it once the relay has been away for 2 seconds meanwhile: the rejection is then
 * `unreachable`, with the outcome.
 */
export async function unlessAway<T>(connector: Connector, call: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const away = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const watch = () => {
    const isOnline = connector.state.status === "online";
    if (isOnline) clearTimeout(timer);
    timer = isOnline ? undefined : (timer ?? setTimeout(() => away.abort(), AWAY_MS));
  };
  const unwatch = connector.on("state", watch);
  watch();
  try {
    return await call(away.signal);
  } catch (error) {
    throw away.signal.aborted && error instanceof RelayError ? awayError(error) : error;
  } finally {
    unwatch();
    clearTimeout(timer);
  }
}

function awayError({ outcome }: RelayError): RelayError {
  const isUnknown = outcome === "unknown";
  return new RelayError("unreachable", {
    message: "The agent runs on this machine, but has no connection to the relay at the moment.",
    hint: isUnknown
      ? "The target may have got it: ask before you send it again."
      : "Nothing was sent: send it again later.",
    retry: isUnknown ? "never" : "later",
    outcome,
  });
}
