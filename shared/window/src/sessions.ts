import type { UnsignedEnvelope } from "protocol/contract/envelope.ts";
import { SESSION_LIMITS } from "protocol/contract/limits.ts";
import type { DeliveryStatus } from "protocol/contract/presence.ts";
import type { SessionStatus } from "protocol/contract/session.ts";
import { decidedStatus, sessionStatus } from "./acceptance/acceptance-reply.ts";
import { guardDigestOf, partitionOfSession } from "./acceptance/envelope-digest.ts";
import { partitionKeys } from "./redis/keys.ts";
import type { RedisLink } from "./redis/redis-link.ts";

/** A session as the window keeps it: ids, times and states. Times are Unix ms. Source: docs/protocol.md#sessions. */
export interface Session {
  readonly sessionId: string;
  readonly status: SessionStatus;
  readonly requester: string;
  readonly target: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly decidedAt: number | null;
  /** Delivery status of the request at its acceptance. */
  readonly delivery: DeliveryStatus;
}

/**
 * Reads one session; null when there is none, or its end is more than an hour past.
 * @throws ServiceError `unavailable`.
 */
export async function readSession(link: RedisLink, sessionId: string, partitions: number): Promise<Session | null> {
  const p = partitionOfSession(sessionId, partitions);
  if (p === undefined) return null;
  const key = partitionKeys.session(p, sessionId);
  const target = await link.command("HGET", key, "target");
  if (typeof target !== "string") return null;
  const reply = (await link.run("read_session", [key, partitionKeys.pending(p, target)])) as string[];
  if (reply.length === 0) return null;
  const [state, requester, , createdAt, expiresAt, decidedAt, delivery] = reply as [
    ...[string, string, string, string, string, string],
    DeliveryStatus,
  ];
  return {
    sessionId,
    status: sessionStatus(state),
    requester,
    target,
    createdAt: Number(createdAt),
    expiresAt: Number(expiresAt),
    decidedAt: decidedAt === "" ? null : Number(decidedAt),
    delivery,
  };
}

export type DecisionOutcome = "decided" | "unknown_session" | "not_your_session" | "session_closed";

/**
 * Decides a session for its target; null when the window is another one.
 * @throws ServiceError `unavailable`.
 */
export async function decideSession(
  link: RedisLink,
  windowId: string,
  partition: number,
  decision: UnsignedEnvelope,
): Promise<DecisionOutcome | null> {
  const sessionId = decision.payload.session_id as string;
  const target = decision.from;
  const keys = [
    partitionKeys.window(partition),
    partitionKeys.session(partition, sessionId),
    partitionKeys.pending(partition, target),
  ];
  const state = decidedStatus(decision);
  const args = [windowId, target, decision.to as string, state, guardDigestOf(decision), SESSION_LIMITS.keepAfterEndMs];
  const [outcome] = (await link.run("decide_session", keys, args)) as ["window" | DecisionOutcome];
  return outcome === "window" ? null : outcome;
}
