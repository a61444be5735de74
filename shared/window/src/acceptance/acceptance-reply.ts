import type { DeliveryStatus, PresenceStatus } from "relay-protocol/contract/presence.ts";
import type { SessionLimit } from "relay-protocol/contract/refusals.ts";
import type { SessionStatus } from "relay-protocol/contract/session.ts";
import { SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { NO_SESSION } from "../channel/channel-line.ts";
import type { Reply } from "../redis/scripts.ts";
import { parseDecidedSession, parsePendingSession, type SessionState, statusOf } from "../sessions/session-records.ts";
import {
  type Acceptance,
  type AcceptanceRefusal,
  type PlacedItem,
  type PreparedDecision,
  UNDONE,
} from "./acceptance.ts";
import { isPlain } from "./acceptance-call.ts";

/** Replies of the scripts that accept, as outcomes. Pure. */

/** Outcome and delivery status of a plain message by its letter. Source: shared/window/src/lua/accept.lua. */
const LETTERS: ReadonlyMap<string, readonly ["accepted" | "duplicate", DeliveryStatus]> = new Map([
  ["O", ["accepted", "online"]],
  ["S", ["accepted", "stale"]],
  ["F", ["accepted", "stale"]],
  ["N", ["accepted", "not_seen"]],
  ["o", ["duplicate", "online"]],
  ["s", ["duplicate", "stale"]],
  ["f", ["duplicate", "stale"]],
  ["n", ["duplicate", "not_seen"]],
]);

/**
 * The outcome of each item of a batch, in order.
 * @param reply `{'ok', now, letters, result…}`.
 * @param sentAt when the batch was sent: monotonic ms.
 */
export function decodeReply(items: readonly PlacedItem[], reply: readonly Reply[], sentAt: number): Acceptance[] {
  const [, time, letters, ...results] = reply as [string, string | number, string, ...Reply[][]];
  const now = Number(time);
  let plain = 0;
  let other = 0;
  return items.map((item) =>
    isPlain(item)
      ? decodeLetter(letters.charAt(plain++), now)
      : decodeResult(item, results[other++] as Reply[], now, sentAt),
  );
}

/** The refusal of a plain message by its letter. */
const REFUSAL_LETTERS: ReadonlyMap<string, ScriptRefusal> = new Map([
  ["c", "clock_skew"],
  ["x", "not_accepted_by_target"],
]);

function decodeLetter(letter: string, now: number): Acceptance {
  const refusal = REFUSAL_LETTERS.get(letter);
  if (refusal !== undefined) return { outcome: refusal };
  const meaning = LETTERS.get(letter);
  if (meaning === undefined) throw new Error(`accept answered with the letter "${letter}"`);
  const [outcome, delivery] = meaning;
  return { outcome, about: "delivery", delivery, sessionId: null, sessionStatus: null, acceptedAt: now };
}

/** @param now Unix ms, as the script says. */
function decodeResult(item: PlacedItem, reply: readonly Reply[], now: number, sentAt: number): Acceptance {
  const [outcome, ...rest] = reply as [string, ...string[]];
  if (isRefusal(outcome)) return { outcome };
  if (outcome === "unavailable") return UNDONE;
  if (outcome === "not_registered") return { outcome, epoch: Number(rest[0]) };
  if (outcome === "replayed") return replayed(rest);
  if (outcome === "rate_limited") {
    return { outcome, limit: rest[0] as SessionLimit, retryAfterMs: Number(rest[1]) };
  }
  const settled = outcome as "accepted" | "duplicate";
  if (item.kind === "register" || item.kind === "heartbeat") return presence(settled, reply.slice(1), now, sentAt);
  const [status, state, acceptedAt] = rest as [PresenceStatus, SessionState?, string?];
  return {
    outcome: settled,
    about: "delivery",
    delivery: deliveryStatus(status),
    sessionId: item.sessionId === "" ? null : item.sessionId,
    sessionStatus: sessionStatusAfter(item, state),
    acceptedAt: acceptedAt === undefined ? now : Number(acceptedAt),
  };
}

type ScriptRefusal = Extract<
  AcceptanceRefusal,
  "agents_per_key" | "clock_skew" | "not_accepted_by_target" | "over_capacity" | "reused"
>;

const REFUSALS: ReadonlySet<string> = new Set<ScriptRefusal>([
  "agents_per_key",
  "clock_skew",
  "not_accepted_by_target",
  "over_capacity",
  "reused",
]);

function isRefusal(outcome: string): outcome is ScriptRefusal {
  return REFUSALS.has(outcome);
}

function presence(outcome: "accepted" | "duplicate", rest: readonly Reply[], now: number, sentAt: number): Acceptance {
  const [status, lastSeen, epoch, pending = [], decided = [], acceptFrom] = rest as [
    ...[PresenceStatus, string, string],
    ...[string[]?, string[]?, string?],
  ];
  const seenAt = lastSeen === "" ? null : Number(lastSeen);
  return {
    outcome,
    about: "presence",
    status,
    lastSeen: seenAt,
    heardAt: seenAt === null ? null : sentAt - Math.max(0, now - seenAt),
    epoch: epoch === "" ? null : Number(epoch),
    pending: pending.map(parsePendingSession),
    decided: decided.map(parseDecidedSession).filter(({ decidedAt }) => decidedAt + SESSION_LIMITS.decidedKeptMs > now),
    acceptFrom,
  };
}

function replayed(rest: readonly string[]): Acceptance {
  const [status, acceptedAt, envelopeId, sessionId] = rest as [PresenceStatus, string, string, string];
  const first = {
    envelopeId,
    delivery: deliveryStatus(status),
    sessionId: sessionId === NO_SESSION ? null : sessionId,
    acceptedAt: Number(acceptedAt),
  };
  return { outcome: "replayed", first };
}

/** As a delivery status an offline target is `stale`. Source: docs/protocol.md#presence. */
function deliveryStatus(status: PresenceStatus): DeliveryStatus {
  return status === "offline" ? "stale" : status;
}

/** Null for an envelope of no session; a decision is in effect when it comes to acceptance. @param state of a request. */
function sessionStatusAfter({ kind, prepared }: PlacedItem, state: SessionState | undefined): SessionStatus | null {
  const after = kind === "session_decision" ? (prepared as PreparedDecision).state : state;
  return after === undefined ? null : statusOf(after);
}
