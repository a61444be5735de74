import type { DeliveryStatus, PresenceStatus } from "../contract/presence.ts";
import { PENDING, type SessionStatus } from "../contract/session.ts";
import type { Acceptance, PlacedItem, WaitingSession } from "./acceptance.ts";
import { isPlain, NO_SESSION } from "./acceptance-call.ts";
import type { Reply } from "./redis-link.ts";

/** Replies of the script accept as outcomes. Pure. */

/** What a letter says of a plain message that the guard took or knew. */
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

/** The outcome of each item of a batch, in order. @param reply `{'ok', now, letters, result…}`. */
export function decodeReply(items: readonly PlacedItem[], reply: readonly Reply[]): Acceptance[] {
  const [, nowText, letters, ...results] = reply as [string, string, string, ...Reply[][]];
  const now = Number(nowText);
  let plain = 0;
  let other = 0;
  return items.map((item) =>
    isPlain(item) ? decodeLetter(letters.charAt(plain++), now) : decodeResult(item, results[other++] as Reply[], now),
  );
}

function decodeLetter(letter: string, now: number): Acceptance {
  if (letter === "c") return { outcome: "clock_skew" };
  const said = LETTERS.get(letter);
  if (said === undefined) throw new Error(`accept answered with the letter "${letter}"`);
  const [outcome, delivery] = said;
  return { outcome, about: "delivery", delivery, sessionId: null, sessionStatus: null, acceptedAt: now };
}

/** @param now epoch ms, as the script says. */
function decodeResult(item: PlacedItem, reply: readonly Reply[], now: number): Acceptance {
  const [outcome, ...rest] = reply as [string, ...string[]];
  if (outcome === "clock_skew" || outcome === "reused") return { outcome };
  if (outcome === "not_registered") return { outcome, epoch: Number(rest[0]) };
  if (outcome === "replayed") return replayed(rest);
  const settled = outcome as "accepted" | "duplicate";
  if (item.kind === "register" || item.kind === "heartbeat") return presence(settled, rest);
  const [status, state, acceptedAt] = rest as [PresenceStatus, string?, string?];
  return {
    outcome: settled,
    about: "delivery",
    delivery: deliveryStatus(status),
    sessionId: item.sessionId === "" ? null : item.sessionId,
    sessionStatus: state === undefined ? null : sessionStatus(state),
    acceptedAt: acceptedAt === undefined ? now : Number(acceptedAt),
  };
}

function presence(outcome: "accepted" | "duplicate", rest: readonly string[]): Acceptance {
  const [status, lastSeen, epoch, ...waiting] = rest as [PresenceStatus, string, string, ...string[]];
  return {
    outcome,
    about: "presence",
    status,
    lastSeen: lastSeen === "" ? null : Number(lastSeen),
    epoch: epoch === "" ? null : Number(epoch),
    waiting: waiting.map(waitingSession),
  };
}

function waitingSession(member: string): WaitingSession {
  const [sessionId, requester, createdAt, expiresAt] = member.split(" ") as [string, string, string, string];
  return { sessionId, requester, createdAt: Number(createdAt), expiresAt: Number(expiresAt) };
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

/** As a delivery status an offline target is `stale`. Source: protocol, section 7. */
function deliveryStatus(status: PresenceStatus): DeliveryStatus {
  return status === "offline" ? "stale" : status;
}

/** The name that clients know for a state as it is kept. */
export function sessionStatus(state: string): SessionStatus {
  return state === "pending" ? PENDING : (state as SessionStatus);
}
