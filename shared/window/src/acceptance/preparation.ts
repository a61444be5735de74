import type { UnsignedEnvelope } from "relay-protocol/wire/envelope.ts";
import { HTTP_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { holderDigestOf } from "../limits/principals.ts";
import { partitionKeys } from "../redis/keys.ts";
import { isUndone } from "../redis/link-state.ts";
import { everyPartition, partitionOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { SessionState } from "../sessions/session-records.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import {
  type Acceptance,
  type AcceptanceItem,
  type AcceptanceRefusal,
  type Claim,
  GUARD_AHEAD_MS,
  guardBucketOf,
  guardDigestOf,
  type Prepared,
  type PreparedDecision,
  type PreparedRequest,
  partitionOfSession,
  textDigestOf,
} from "./acceptance.ts";

/** Fields of an item that the preparation reads. */
export type Preparable = Pick<AcceptanceItem, "envelope" | "kind" | "text" | "principal" | "claim">;

interface Context {
  readonly link: RedisCalls;
  readonly window: ProcessWindow;
  readonly proofFreshnessMs: number;
}

/** Reply of `count_sessions`. */
type Counted = [pending: number, pendingOfRequester: number, opened: number, openedByPrincipal: number];

/**
 * The steps before the acceptance of some envelopes. Source: docs/redis.md#sessions, docs/redis.md#claims.
 * @returns what the item needs, or the outcome of an envelope that does not reach acceptance.
 * @throws ServiceError `unavailable`.
 */
export async function prepare(item: Preparable, context: Context): Promise<Prepared | Acceptance> {
  if (item.kind === "session_decision") return await prepareDecision(item, context);
  const [refusal, prepared] = await Promise.all([
    item.claim === undefined ? undefined : bindClaim(item.claim, context),
    item.kind === "session_request" ? prepareRequest(item, context) : ({ kind: "message" } as const),
  ]);
  return refusal ?? prepared;
}

/** Binds a claim to its body, for all partitions. @returns the outcome of the envelope if the claim cannot be bound. */
async function bindClaim({ digest, bodyDigest }: Claim, { link, window }: Context): Promise<Acceptance | undefined> {
  const p = partitionOf(digest, window.partitions);
  const keys = [partitionKeys.window(p), partitionKeys.idempotencyBody(p, digest)];
  const outcome = await window.inWindow(async ({ id }) => {
    const args = [id, bodyDigest, HTTP_LIMITS.idempotencyMs, link.memoryOf(partitionKeys.window(p)).isShort ? 1 : 0];
    const [answer] = (await link.runByDeadline("bind_claim", keys, args)) as [
      "window" | "bound" | "reused" | "over_capacity",
    ];
    return answer === "window" ? null : answer;
  });
  return outcome === "bound" ? undefined : { outcome };
}

/**
 * Reserves the decision's place in the guard of its requester's partition, then decides in the session's partition. It
 * decides nothing if the guard has another envelope of the same digest, or accepted this one. Then the acceptance finds
 * a duplicate.
 * @throws ServiceError `unavailable`.
 */
async function prepareDecision(item: Preparable, context: Context): Promise<PreparedDecision | Acceptance> {
  const partition = partitionOfSession(decidedSessionOf(item.envelope), context.window.partitions);
  if (partition === undefined) return { outcome: "unknown_session" };
  const reserved = await reserve(item, context);
  if (reserved === "clock_skew") return { outcome: reserved };
  return await decide(item, partition, reserved === "reserved" ? wantedState(item.envelope) : "-", context);
}

async function reserve(item: Preparable, { link, window }: Context): Promise<"reserved" | "taken" | "clock_skew"> {
  const { envelope, text } = item;
  const p = partitionOf(envelope.to as string, window.partitions);
  const { key, endsAt } = guardBucketOf(p, item);
  const keys = [partitionKeys.window(p), key];
  return await window.inWindow(async ({ id }) => {
    const args = [id, endsAt, GUARD_AHEAD_MS, guardDigestOf(envelope), textDigestOf(text)];
    const [outcome] = (await link.runByDeadline("reserve_decision", keys, args)) as [
      "window" | "reserved" | "taken" | "clock_skew",
    ];
    return outcome === "window" ? null : outcome;
  });
}

async function decide(
  { envelope, text }: Preparable,
  p: number,
  wanted: SessionState | "-",
  { link, window, proofFreshnessMs }: Context,
): Promise<PreparedDecision | Acceptance> {
  const sessionId = decidedSessionOf(envelope);
  const { from: target, to: requester } = envelope;
  return await window.inWindow(async ({ id, keys }) => {
    const { session, pending, principalPrefix } = keys.partition(p);
    const names = [partitionKeys.window(p), session(sessionId), pending(target)];
    const words = [id, sessionId, target, requester as string, wanted, textDigestOf(text)];
    const args = [...words, SESSION_LIMITS.keepAfterEndMs, principalPrefix, proofFreshnessMs];
    const reply = (await link.runByDeadline("decide_session", names, args)) as [string, SessionState, string];
    const [outcome, state, decidedAt] = reply;
    if (outcome === "window") return null;
    if (outcome === "state") return { kind: "decision", state, decidedAt };
    return { outcome: outcome as AcceptanceRefusal };
  });
}

/**
 * Counts the sessions that bound a request, in all partitions except the target's. Concurrent requests do not see each
 * other, and partitions out of reach count as empty. So a bound may be exceeded by as many sessions.
 * @throws ServiceError `unavailable`.
 */
async function prepareRequest({ envelope, principal }: Preparable, context: Context): Promise<PreparedRequest> {
  const { link, window } = context;
  const { keys } = await window.known();
  const own = partitionOf(envelope.to as string, window.partitions);
  const others = everyPartition(window.partitions).filter((p) => p !== own);
  const digest = holderDigestOf(principal);
  const countIn = async (p: number) => {
    const { principal: pending, opened } = keys.partition(p);
    const names = [pending(digest), pending(envelope.from), opened(envelope.from), opened(digest)];
    return (await link.run("count_sessions", names)) as Counted;
  };
  const counts = await Promise.all(others.map((p) => countIn(p).catch(noneOutOfReach)));
  const sum = (numbers: readonly number[]) => numbers.reduce((total, n) => total + n, 0);
  return {
    kind: "request",
    pendingElsewhere: sum(counts.map(([pending]) => pending)),
    pendingOfRequesterElsewhere: sum(counts.map(([, pending]) => pending)),
    openedElsewhere: sum(counts.map(([, , opened]) => opened)),
    openedByPrincipalElsewhere: sum(counts.map(([, , , opened]) => opened)),
  };
}

/**
 * Only a call that Redis did not carry out counts as none.
 * @throws any other failure: a slow server may hold sessions.
 */
function noneOutOfReach(failure: unknown): Counted {
  if (!isUndone(failure)) throw failure;
  return [0, 0, 0, 0];
}

/** The session that a decision names. */
export function decidedSessionOf({ payload }: UnsignedEnvelope): string {
  return payload.session_id as string;
}

function wantedState({ type }: UnsignedEnvelope): SessionState {
  return type === "session.approve" ? "a" : "r";
}
