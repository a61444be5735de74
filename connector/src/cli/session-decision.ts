import { pause } from "../pause.ts";
import { Failure, failureOf } from "./failure.ts";
import type { RelayHttp } from "./relay-http.ts";
import type { Reporter } from "./reporter.ts";

export const LOOK_MS = 1000;
const DECISIONS: ReadonlySet<unknown> = new Set(["approved", "rejected", "expired"]);

interface Asking {
  readonly http: RelayHttp;
  /** Told when the relay goes away meanwhile. */
  readonly reporter: Reporter;
}

/**
 * Asks the relay for the decision on a session, until there is one: the answer itself may be delivered to another process of the
 * agent, or while there is no connection. @param deadline Unix ms.
 * @throws {Failure} `timeout`; `unknown_session` where the relay has lost the session; what no repetition changes.
 */
export async function decisionOn(
  sessionId: string,
  { http, reporter }: Asking,
  deadline: number,
  signal: AbortSignal,
): Promise<string> {
  let away: Failure | undefined;
  for (;;) {
    const read = http.patiently(() => http.session(sessionId), deadline);
    const session = await read.catch(passing);
    if (session instanceof Failure) {
      if (away === undefined) reporter.report("waiting", `${session.message} Waiting for it.`, { code: session.code });
      away = session;
    } else {
      away = undefined;
      if (DECISIONS.has(session?.status)) return String(session?.status);
    }
    if (Date.now() >= deadline) throw undecided(away);
    await pause(Math.min(LOOK_MS, deadline - Date.now()), signal);
  }
}

/** Why the relay does not say it for the moment, such as during its restart. @throws {Failure} what stays as it is. */
function passing(error: unknown): Failure {
  const failure = failureOf(error);
  if (failure.code === "unknown_session") throw lost();
  if (failure.retry !== "later") throw failure;
  return failure;
}

/** The relay accepted the request, so it had the session. */
function lost(): Failure {
  const text = "The relay does not have the session any more: it lost what it knew, as with a Redis that starts empty.";
  return new Failure("unknown_session", text, "Nobody can decide it now: request the session again.");
}

function undecided(away: Failure | undefined): Failure {
  const why = away === undefined ? "" : ` ${away.message}`;
  return new Failure(
    "timeout",
    `The session was not decided in time.${why}`,
    "It may be decided still: its answer goes to a relay listen of this agent.",
  );
}
