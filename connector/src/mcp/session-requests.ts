import { keepNewest } from "../keep-newest.ts";
import { requestedSession } from "../requested-session.ts";
import { PENDING } from "../session-status.ts";
import type { AcceptedSession, Delivery, PendingSession } from "../types.ts";
import type { SessionState } from "./session-state.ts";

const MAX_KEPT = 1000;
/** Sessions that are looked up at once, and how soon again: other processes of the address look things up, too. */
const LOOK_UP = { max: 10, againMs: 5000 } as const;

/** A session that was requested of this agent and is, as far as is known here, undecided. */
export interface SessionRequest extends PendingSession {
  /** Untrusted, of a request that came here. */
  readonly purpose?: string;
  /** Whether this agent got the request, here or in another process; undefined while nobody has said. */
  readonly isReceived?: boolean;
}

/** The newest sessions that were requested of this agent, and what was decided here. */
export class SessionRequests {
  /** In the order in which they became known. */
  readonly #undecided = new Map<string, SessionRequest>();
  /** When the relay was asked for them last, by performance.now(). */
  readonly #lookedUpAt = new Map<string, number>();
  /** What the relay accepted from here, in that order. */
  readonly #decisions = new Map<string, AcceptedSession>();

  received(delivery: Delivery): void {
    const session = requestedSession(delivery);
    if (session === undefined) return;
    this.#keep({ ...session, isReceived: true });
  }

  /** The relay's notice says nothing of contents, nor of what was received. */
  noticed(sessions: readonly PendingSession[]): void {
    for (const session of sessions) {
      const known = this.#undecided.get(session.sessionId);
      this.#keep({ ...known, ...session });
    }
  }

  find(sessionId: string): SessionRequest | undefined {
    return this.#undecided.get(sessionId);
  }

  pending(): readonly SessionRequest[] {
    return [...this.#undecided.values()].filter(({ expiresAt }) => expiresAt.getTime() > Date.now());
  }

  /** The newest that have not been looked up just now; they then have. */
  toLookUp(): readonly SessionRequest[] {
    const now = performance.now();
    const due = this.pending().filter(
      ({ sessionId }) => now - (this.#lookedUpAt.get(sessionId) ?? -Infinity) >= LOOK_UP.againMs,
    );
    const newest = due.slice(-LOOK_UP.max);
    for (const { sessionId } of newest) keepNewest(this.#lookedUpAt, sessionId, now, MAX_KEPT);
    return newest;
  }

  decided(accepted: AcceptedSession): void {
    this.#undecided.delete(accepted.sessionId);
    keepNewest(this.#decisions, accepted.sessionId, accepted, MAX_KEPT);
  }

  /** The relay has it so. */
  found(sessionId: string, { status, isReceived }: SessionState): void {
    const known = this.#undecided.get(sessionId);
    if (status !== PENDING) this.#undecided.delete(sessionId);
    else if (known !== undefined) this.#undecided.set(sessionId, { ...known, isReceived });
  }

  /** The decision that was made here, where it is that one: to make it again is no other. */
  decisionOn(sessionId: string, status: AcceptedSession["status"]): AcceptedSession | undefined {
    const accepted = this.#decisions.get(sessionId);
    return accepted?.status === status ? { ...accepted, duplicate: true } : undefined;
  }

  isDecidedHere(sessionId: string): boolean {
    return this.#decisions.has(sessionId);
  }

  /** What was decided here is not pending again, although a notice that left the relay before says so. */
  #keep(session: SessionRequest): void {
    if (this.isDecidedHere(session.sessionId)) return;
    keepNewest(this.#undecided, session.sessionId, session, MAX_KEPT);
  }
}
