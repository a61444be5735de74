import { textOf } from "./frames.ts";
import { SESSION_TTL_MINUTES } from "./limits.ts";
import type { Delivery, PendingSession } from "./types.ts";

const MINUTE_MS = 60_000;

/** What a delivered request asks of this agent. Its times are by this machine's clock. */
export interface RequestedSession extends PendingSession {
  /** Untrusted. */
  readonly purpose: string;
}

/** The session that a delivery requests; undefined for any other. */
export function requestedSession({
  type,
  sessionId,
  from,
  payload,
  receivedAt,
}: Delivery): RequestedSession | undefined {
  if (type !== "session.request" || sessionId === undefined) return undefined;
  const { purpose, ttl_minutes: ttl } = payload;
  const minutes = typeof ttl === "number" ? ttl : SESSION_TTL_MINUTES.default;
  const [createdAt, expiresAt] = [new Date(receivedAt), new Date(receivedAt + minutes * MINUTE_MS)];
  return { sessionId, requester: from, purpose: textOf(purpose) ?? "", createdAt, expiresAt };
}
