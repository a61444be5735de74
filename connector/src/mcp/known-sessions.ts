import { z } from "zod";
import { RelayError } from "../errors.ts";
import { keepNewest } from "../keep-newest.ts";
import { requestedSession } from "../requested-session.ts";
import { sessionIdOf } from "../session-id.ts";
import { PENDING } from "../session-status.ts";
import type { AcceptedSession, DecidedSession, Delivery, PendingSession, SessionStatus } from "../types.ts";

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

/** Asks the relay for a session. Resolves with its answer; rejects as PresenceOf does. */
export type SessionOf = (sessionId: string, signal: AbortSignal) => Promise<unknown>;

/** A session as the relay has it: who, when and in which state, never its contents. */
export interface SessionState {
  readonly status: SessionStatus;
  readonly requester: string;
  readonly target: string;
  readonly createdAt: string;
  readonly expiresAt: string;
  /** Null while it is pending. */
  readonly decidedAt: string | null;
  /** Whether the target got the request. To approve one that it did not get counts for nothing. */
  readonly isReceived: boolean;
}

export const STATUSES = [PENDING, "approved", "rejected", "expired"] as const;

/** The part of the relay's answer that is used. Source: docs/protocol.md#sessions. */
const Answer = z.object({
  session_id: z.string().refine((id) => sessionIdOf(id) !== undefined),
  status: z.enum(STATUSES),
  requester: z.string(),
  target: z.string(),
  created_at_iso: z.string(),
  expires_at_iso: z.string(),
  decided_at_iso: z.string().nullable(),
  target_delivery: z.object({ can_deliver_realtime: z.boolean() }),
});

/** @throws as SessionOf rejects; `refused` for an answer that says something else. */
export async function sessionState(ask: SessionOf, sessionId: string, signal: AbortSignal): Promise<SessionState> {
  const answer = Answer.safeParse(await ask(sessionId, signal));
  if (!answer.success || answer.data.session_id !== sessionId) throw new RelayError("refused");
  const { status, requester, target, created_at_iso, expires_at_iso, decided_at_iso, target_delivery } = answer.data;
  return {
    ...{ status, requester, target },
    ...{ createdAt: created_at_iso, expiresAt: expires_at_iso, decidedAt: decided_at_iso },
    isReceived: target_delivery.can_deliver_realtime,
  };
}

const MAX_DECIDED = 100;
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
    keepNewest(this.#sessions, session.sessionId, session, MAX_DECIDED);
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
