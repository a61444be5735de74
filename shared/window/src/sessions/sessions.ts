import type { SessionStatus } from "relay-protocol/contract/session.ts";
import { partitionOfSession } from "../acceptance/envelope-digest.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { parseSession, type SessionRecord, type SessionState, statusOf } from "./session-records.ts";

/** A session as the window keeps it: ids, times and states. Source: docs/protocol.md#sessions. */
export interface Session extends SessionRecord {
  readonly sessionId: string;
  readonly status: SessionStatus;
}

/**
 * Reads one session; null when there is none, or its end is more than an hour past.
 * @throws ServiceError `unavailable`.
 */
export async function readSession(link: RedisCalls, window: ProcessWindow, sessionId: string): Promise<Session | null> {
  const p = partitionOfSession(sessionId, window.partitions);
  if (p === undefined) return null;
  const first = await window.read(p, ({ session }) => link.command("GET", session(sessionId)));
  if (typeof first !== "string") return null;
  const { target } = parseSession(first);
  const reply = (await window.read(p, ({ session, asked }) =>
    link.run("read_session", [session(sessionId), asked(target)], [sessionId]),
  )) as string[];
  if (reply.length === 0) return null;
  const [state, record] = reply as [SessionState, string];
  return { sessionId, status: statusOf(state), ...parseSession(record) };
}
