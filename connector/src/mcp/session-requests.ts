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

/** A decision that the relay accepted. */
export interface SentDecision extends AcceptedSession {
  /** The requester that it went to. */
  readonly to: string;
}

/** The newest sessions that were requested of this agent, and what was decided here. */
export class SessionRequests {
  /** Undecided ones, in the order in which they became known. */
  readonly #received = new Map<string, SessionRequest>();
  /** Those that only the relay names: however many it makes up, it has no request forgotten that came here. */
  readonly #noticed = new Map<string, SessionRequest>();
  /** When the relay was asked for them last, by performance.now(). */
  readonly #lookedUpAt = new Map<string, number>();
  /** What the relay accepted from here, in that order. */
  readonly #decisions = new Map<string, SentDecision>();

  received(delivery: Delivery): void {
    const session = requestedSession(delivery);
    if (session === undefined) return;
    this.#keep(this.#received, { ...session, isReceived: true });
  }

  /** Nobody signs a notice, which says nothing of contents, nor of what was received. A later one changes nothing. */
  noticed(sessions: readonly PendingSession[]): void {
    for (const session of sessions) this.#keep(this.#noticed, this.#noticed.get(session.sessionId) ?? session);
  }

  /** As its requester signed it, else as the relay has it. */
  find(sessionId: string): SessionRequest | undefined {
    return this.#received.get(sessionId) ?? this.#noticed.get(sessionId);
  }

  pending(): readonly SessionRequest[] {
    const undecided = new Map([...this.#noticed, ...this.#received]);
    return [...undecided.values()].filter(({ expiresAt }) => expiresAt.getTime() > Date.now());
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

  decided(decision: SentDecision): void {
    this.#forget(decision.sessionId);
    keepNewest(this.#decisions, decision.sessionId, decision, MAX_KEPT);
  }

  /** The relay has it so. */
  found(sessionId: string, { status, isReceived }: SessionState): void {
    if (status !== PENDING) this.#forget(sessionId);
    for (const sessions of [this.#received, this.#noticed]) {
      const known = sessions.get(sessionId);
      if (known !== undefined) sessions.set(sessionId, { ...known, isReceived });
    }
  }

  /** The decision that was made here, where it is that one: to make it again is no other. */
  decisionOn(sessionId: string, status: AcceptedSession["status"]): SentDecision | undefined {
    const decision = this.#decisions.get(sessionId);
    return decision?.status === status ? { ...decision, duplicate: true } : undefined;
  }

  isDecidedHere(sessionId: string): boolean {
    return this.#decisions.has(sessionId);
  }

  /** What was decided here is not pending again, although a notice that left the relay before says so. */
  #keep(sessions: Map<string, SessionRequest>, session: SessionRequest): void {
    if (this.isDecidedHere(session.sessionId)) return;
    keepNewest(sessions, session.sessionId, session, MAX_KEPT);
  }

  #forget(sessionId: string): void {
    this.#received.delete(sessionId);
    this.#noticed.delete(sessionId);
  }
}
