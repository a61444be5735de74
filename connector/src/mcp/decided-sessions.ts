import { z } from "zod";
import { keepNewest } from "../keep-newest.ts";
import type { DecidedSession, Delivery } from "../types.ts";

const MAX_KEPT = 100;
/** Ids alone: far more than a relay tells of the hour in which it tells them again. */
const MAX_KNOWN = 10_000;

/** What waits for a model: a message, or that a session was decided of which it requested. */
export type Arrival = Delivery | DecidedSession;

export function isDelivery(arrival: Arrival): arrival is Delivery {
  return "envelope" in arrival;
}

/** Who wrote the message, or decided. */
export function senderOf(arrival: Arrival): string {
  return isDelivery(arrival) ? arrival.from : arrival.target;
}

/** The newest decisions on sessions that this agent requested: delivered to it, or told by the relay once it was back. */
export class DecidedSessions {
  /** In the order in which they became known. */
  readonly #sessions = new Map<string, DecidedSession>();
  /** Those that were told, the ones that are not kept any more, too: none is news twice. */
  readonly #known = new Map<string, true>();

  /** The relay tells the same decisions again whenever the agent comes online. @returns those that were not known. */
  noticed(sessions: readonly DecidedSession[]): readonly DecidedSession[] {
    return sessions.filter((session) => this.#keep(session));
  }

  received({ type, sessionId, from: target, receivedAt }: Delivery): void {
    if (sessionId === undefined || (type !== "session.approve" && type !== "session.reject")) return;
    const status = type === "session.approve" ? "approved" : "rejected";
    this.#keep({ sessionId, target, status, decidedAt: new Date(receivedAt) });
  }

  all(): readonly DecidedSession[] {
    return [...this.#sessions.values()];
  }

  /** @returns whether it was not known. */
  #keep(session: DecidedSession): boolean {
    if (this.#known.has(session.sessionId)) return false;
    keepNewest(this.#known, session.sessionId, true, MAX_KNOWN);
    keepNewest(this.#sessions, session.sessionId, session, MAX_KEPT);
    return true;
  }
}

/** A decided session in the results of tools. */
export const DecidedResult = z.strictObject({
  session_id: z.string(),
  target: z.string(),
  status: z.enum(["approved", "rejected"]),
  decided_at_iso: z.string(),
});

export function decidedResult(session: DecidedSession): z.infer<typeof DecidedResult> {
  const { sessionId, target, status, decidedAt } = session;
  return { session_id: sessionId, target, status, decided_at_iso: decidedAt.toISOString() };
}
