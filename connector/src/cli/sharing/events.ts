import type { Connector } from "../../connector.ts";
import { isErrorCode, knownRetry, RelayError } from "../../errors.ts";
import { membersOf, textOf } from "../../frames.ts";
import { keepNewest } from "../../keep-newest.ts";
import { type ReplySend, withReply } from "../../replies.ts";
import { requestedSession } from "../../requested-session.ts";
import type {
  ConnectorState,
  DecidedSession,
  Delivery,
  Envelope,
  JsonObject,
  Notice,
  PendingSession,
} from "../../types.ts";
import { errorWithAuthorities } from "../failure.ts";
import { jsonLine } from "../io.ts";

/**
 * The lines in which one process tells another of the same user what comes over the agent's connection: JSON of its control
 * socket, after a line {"follow":true}. Both ends are of this package. Those of deliveries are written by `deliveryMembers`.
 */

/** What whoever follows later is told, too. */
type SessionNotice = Extract<Notice, { kind: "pending_sessions" | "decided_sessions" }>;

/** The state of a connection that ended for good stays with its process: whoever follows then connects by itself. */
export function stateLine(state: ConnectorState): string {
  if (state.status === "closed") return jsonLine({ event: "state", state: { status: "connecting" } });
  if (state.status !== "reconnecting" || state.error === undefined) return jsonLine({ event: "state", state });
  const { code, message, hint, retry } = state.error;
  return jsonLine({ event: "state", state: { ...state, error: { code, message, hint, retry } } });
}

/** @param members those of stateLine. */
export function stateOf({ state }: JsonObject): ConnectorState {
  const { error, ...members } = membersOf(state);
  const { code, message, hint, retry } = membersOf(error);
  const why = isErrorCode(code) && {
    error: new RelayError(code, { message: textOf(message), hint: textOf(hint), retry: knownRetry(retry) }),
  };
  return { ...members, ...why } as ConnectorState;
}

export function isOfSessions(notice: Notice): notice is SessionNotice {
  return notice.kind === "pending_sessions" || notice.kind === "decided_sessions";
}

export function noticeLine({ kind, ...members }: SessionNotice): string {
  return jsonLine({ event: kind, ...members });
}

/** @param members those of noticeLine; undefined for another line. */
export function noticeOf({ event, total, sessions }: JsonObject): SessionNotice | undefined {
  const listed = Array.isArray(sessions) ? sessions : [];
  if (event === "pending_sessions") {
    return { kind: event, total: total as number, sessions: (listed as PendingSession[]).map(datedPending) };
  }
  if (event !== "decided_sessions") return undefined;
  return { kind: event, sessions: (listed as DecidedSession[]).map(datedDecided) };
}

function datedPending({ createdAt, expiresAt, ...session }: PendingSession): PendingSession {
  return { ...session, createdAt: new Date(createdAt), expiresAt: new Date(expiresAt) };
}

function datedDecided({ decidedAt, ...session }: DecidedSession): DecidedSession {
  return { ...session, decidedAt: new Date(decidedAt) };
}

/** @param members those of deliveryMembers. @param send what its reply goes out by. */
export function deliveryOf(members: JsonObject, send: ReplySend): Delivery {
  const envelope = membersOf(members.envelope) as unknown as Envelope;
  const { from, type, payload } = envelope;
  const [sessionId, issuer] = [textOf(members.session_id), textOf(members.issuer)];
  const received = {
    envelope,
    from,
    type,
    payload,
    verified: members.verified as Delivery["verified"],
    ...(sessionId !== undefined && { sessionId }),
    ...(issuer !== undefined && { issuer }),
    sealed: members.sealed === true,
    receivedAt: Date.parse(String(members.received_at_iso)),
  };
  return withReply(received, send);
}

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

/**
 * Errors of attempts that reached no relay. Where its websocket answers and something else does over HTTP, it registers nobody, and
 * the connection is lost again and again.
 */
export const NO_RELAY_REACHED: readonly string[] = ["unreachable", "not_a_relay"];

/**
 * Calls `tell` with each state of the connector; with that of one that reaches no relay once more when it is known why, and from
 * then on with that `error`. @returns a function that ends it.
 */
export function onState(connector: Connector, tell: (state: ConnectorState) => void): () => void {
  let why: RelayError | undefined;
  const withWhy = (state: ConnectorState): ConnectorState => {
    const isUnreachable =
      state.status === "reconnecting" && (state.reason === "unreachable" || why?.code === "not_a_relay");
    if (state.status === "closed" && state.error) return { ...state, error: errorWithAuthorities(state.error) };
    return isUnreachable && why !== undefined ? { error: why, ...state } : state;
  };
  const ends = [
    connector.on("state", (state) => {
      if (state.status === "online") why = undefined;
      tell(withWhy(state));
    }),
    connector.on("error", (error) => {
      const { status } = connector.state;
      if (!NO_RELAY_REACHED.includes(error.code) || status === "online" || status === "closed") return;
      why = errorWithAuthorities(error);
      if (status === "reconnecting") tell(withWhy(connector.state));
    }),
  ];
  return () => {
    for (const end of ends) end();
  };
}
