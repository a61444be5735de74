import type { Connector } from "./connector.ts";
import { RelayError } from "./errors.ts";

/** What holds an agent's connection. `refusal`: why it does not come to be, where no state says so. */
type Held = Pick<Connector, "state" | "on"> & { readonly refusal?: RelayError | undefined };

/**
 * Runs a call over the agent's connection, and ends it once that has been away for `awayMs` meanwhile: the rejection is then
 * `unreachable`, or what the relay refused the agent with, and says the outcome.
 * @param outlasts the call is worth waiting for once it can have gone out: it is ended only where there was no connection since it began.
 */
export async function unlessAway<T>(
  connector: Held,
  awayMs: number,
  call: (signal: AbortSignal) => Promise<T>,
  outlasts = false,
): Promise<T> {
  const away = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let wasOnline = false;
  const watch = () => {
    const isOnline = connector.state.status === "online" || (outlasts && wasOnline);
    wasOnline ||= isOnline;
    if (isOnline) clearTimeout(timer);
    timer = isOnline ? undefined : (timer ?? setTimeout(() => away.abort(), awayMs));
  };
  const unwatch = connector.on("state", watch);
  watch();
  try {
    return await call(away.signal);
  } catch (error) {
    const { code, outcome } = error as RelayError;
    throw away.signal.aborted && code === "aborted" ? awayError(outcome, causeIn(connector)) : error;
  } finally {
    unwatch();
    clearTimeout(timer);
  }
}

/** Why there is no connection, where that is known: why the relay is out of reach, or does not register the agent. */
function causeIn({ state, refusal }: Held): RelayError | undefined {
  return (state.status === "reconnecting" ? state.error : undefined) ?? refusal;
}

function awayError(outcome: RelayError["outcome"], cause: RelayError | undefined): RelayError {
  const isUnknown = outcome === "unknown";
  if (cause !== undefined && cause.code !== "unreachable" && !isUnknown) return cause;
  const why = cause === undefined ? "" : ` ${cause.message}`;
  return new RelayError("unreachable", {
    message: `The agent has no connection to the relay at the moment.${why}`,
    hint: isUnknown
      ? "The target may have got it: ask before you send it again."
      : `Nothing was sent: send it again later.${cause === undefined ? "" : ` ${cause.hint}`}`,
    retry: isUnknown ? "never" : "later",
    outcome,
  });
}
