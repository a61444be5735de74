import { keepNewest } from "../../keep-newest.ts";
import { requestedSession } from "../../requested-session.ts";
import type { Delivery, PendingSession } from "../../types.ts";
import type { SessionNotice } from "./follow-lines.ts";

/** As many as a relay lets wait for one agent. */
const MAX_PENDING = 100;

/** What a process that follows a connection later has to know of the agent's sessions. */
export class SessionNotices {
  /** By id, in the order in which they became known; some may be decided by now. As their requesters signed them. */
  readonly #received = new Map<string, PendingSession>();
  /** As the relay has them, which counts for nothing where the request came here. */
  readonly #noticed = new Map<string, PendingSession>();
  #decided: SessionNotice | undefined;

  noticed(notice: SessionNotice): void {
    if (notice.kind === "decided_sessions") this.#decided = notice;
    else for (const session of notice.sessions) keep(this.#noticed, session);
  }

  received(delivery: Delivery): void {
    const requested = requestedSession(delivery);
    if (requested === undefined) return;
    const { purpose: _, ...session } = requested;
    keep(this.#received, session);
  }

  all(): readonly SessionNotice[] {
    const known = new Map([...this.#noticed, ...this.#received]);
    const undecided = [...known.values()].filter(({ expiresAt }) => expiresAt.getTime() > Date.now());
    const sessions = undecided.slice(-MAX_PENDING);
    const pending: SessionNotice = { kind: "pending_sessions", total: sessions.length, sessions };
    return [pending, ...(this.#decided === undefined ? [] : [this.#decided])];
  }
}

function keep(sessions: Map<string, PendingSession>, session: PendingSession): void {
  keepNewest(sessions, session.sessionId, session, MAX_PENDING);
}
