/** A session that its target has not decided yet. */
export interface PendingSession {
  readonly sessionId: string;
  readonly requester: string;
  /** Unix ms. */
  readonly createdAt: number;
  readonly expiresAt: number;
}

/**
 * Reads a member of a pending set, `session requester created_at expires_at`.
 * Source: shared/window/src/lua/lib/pending.lua.
 */
export function parsePendingSession(member: string): PendingSession {
  const [sessionId, requester, createdAt, expiresAt] = member.split(" ") as [string, string, string, string];
  return { sessionId, requester, createdAt: Number(createdAt), expiresAt: Number(expiresAt) };
}
