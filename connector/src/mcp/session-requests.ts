import { RelayError } from "../errors.ts";
import type { AcceptedSession, Delivery, PendingSession } from "../types.ts";

const MAX_KEPT = 1000;

/** The sessions that were requested of this agent: who requested the newest ones, and which were pending when it came online. */
export class SessionRequests {
  /** In the order in which they became known. */
  readonly #requesters = new Map<string, string>();
  /** What the relay accepted from here, in that order. */
  readonly #decisions = new Map<string, AcceptedSession>();
  #pending: readonly PendingSession[] = [];

  received({ type, sessionId, from }: Delivery): void {
    if (type === "session.request" && sessionId !== undefined) this.#keep(sessionId, from);
  }

  noticed(sessions: readonly PendingSession[]): void {
    for (const { sessionId, requester } of sessions) this.#keep(sessionId, requester);
    this.#pending = sessions;
  }

  /** A decided session stays known, so that the relay tells of a second decision what it is. @throws {RelayError} */
  requesterOf(sessionId: string): string {
    const requester = this.#requesters.get(sessionId);
    if (requester !== undefined) return requester;
    throw new RelayError("unknown_session", {
      message: "No request of that session came to this process.",
      hint: "Take the session_id of a session.request, or of pending_sessions in my_status. Else its requester may request another.",
    });
  }

  /** The sessions of the latest notice that are neither decided here nor expired. */
  pending(): readonly PendingSession[] {
    return this.#pending.filter(({ expiresAt }) => expiresAt.getTime() > Date.now());
  }

  decided(accepted: AcceptedSession): void {
    const { sessionId } = accepted;
    this.#pending = this.#pending.filter((session) => session.sessionId !== sessionId);
    keepNewest(this.#decisions, sessionId, accepted);
  }

  /** The decision that was made here, where it is that one: to make it again is no other. */
  decisionOn(sessionId: string, status: AcceptedSession["status"]): AcceptedSession | undefined {
    const accepted = this.#decisions.get(sessionId);
    return accepted?.status === status ? { ...accepted, duplicate: true } : undefined;
  }

  #keep(sessionId: string, requester: string): void {
    keepNewest(this.#requesters, sessionId, requester);
  }
}

function keepNewest<T>(map: Map<string, T>, key: string, value: T): void {
  map.set(key, value);
  const [oldest] = map.keys();
  if (map.size > MAX_KEPT) map.delete(oldest as string);
}
