import { RelayError } from "../errors.ts";
import type { Delivery, PendingSession } from "../types.ts";

const MAX_KEPT = 1000;

/** The sessions that were requested of this agent: who requested the newest ones, and which were pending when it came online. */
export class SessionRequests {
  /** In the order in which they became known. */
  readonly #requesters = new Map<string, string>();
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

  decided(sessionId: string): void {
    this.#pending = this.#pending.filter((session) => session.sessionId !== sessionId);
  }

  #keep(sessionId: string, requester: string): void {
    this.#requesters.set(sessionId, requester);
    const [oldest] = this.#requesters.keys();
    if (this.#requesters.size > MAX_KEPT) this.#requesters.delete(oldest as string);
  }
}
