import type { SessionStatus } from "./types.ts";

/** Of a session that was requested and is not decided. Source: docs/protocol.md#sessions. */
export const PENDING = "pending_until_session.approve_or_session.reject" satisfies SessionStatus;
