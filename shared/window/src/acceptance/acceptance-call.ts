import type { DeliveryStatus, PresenceStatus } from "relay-protocol/contract/presence.ts";
import { type SessionLimit, sessionBound } from "relay-protocol/contract/refusals.ts";
import type { SessionStatus } from "relay-protocol/contract/session.ts";
import { SESSION_ID_PREFIX } from "relay-protocol/wire/envelope.ts";
import { HTTP_LIMITS, PRESENCE_LIMITS, SESSION_LIMITS, WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import { NO_SESSION, textWithTrace } from "../channel/server-channel.ts";
import {
  type AgentLimits,
  acceptFromOf,
  agentLimitArgs,
  boundsFactorOf,
  holderDigestOf,
  isIssuer,
  NOT_KNOWN,
  type Principal,
} from "../limits/principals.ts";
import { formatCredential } from "../presence/credentials.ts";
import { CONGESTED } from "../presence/presence.ts";
import { keyNumbers, partitionKeys } from "../redis/keys.ts";
import { REDIS_LIMITS } from "../redis/limits.ts";
import type { Reply } from "../redis/scripts.ts";
import type { PartitionKeys } from "../redis/window-keys.ts";
import { parseDecidedSession, parsePendingSession, type SessionState, statusOf } from "../sessions/records.ts";
import {
  type Acceptance,
  type AcceptanceRefusal,
  GUARD_AHEAD_MS,
  guardBucketOf,
  guardSpanOf,
  type PlacedItem,
  type PreparedDecision,
  type PreparedRequest,
  textDigestOf,
  UNDONE,
} from "./acceptance.ts";

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

/** Batches of one partition as the keys and arguments of the script accept. Pure. */

const NOTHING_ELSEWHERE: PreparedRequest = {
  kind: "request",
  pendingElsewhere: 0,
  pendingOfRequesterElsewhere: 0,
  openedElsewhere: 0,
  openedByPrincipalElsewhere: 0,
};

/** One call of a script that accepts a batch; the link adds its deadline. */
export interface AcceptCall {
  readonly script: "accept" | "accept_messages";
  readonly keys: string[];
  readonly args: (string | number)[];
}

/** What a batch is accepted for. */
export interface AcceptContext {
  readonly partition: number;
  readonly windowId: string;
  /** Of the partition. */
  readonly keys: PartitionKeys;
  /** The pod whose connections the items came in on; undefined where no register or heartbeat comes in. */
  readonly pod: string | undefined;
  readonly offlineAfterMs: number;
  /** How long the proof of a target is kept. */
  readonly proofFreshnessMs: number;
  /** Of the partition. */
  readonly limits: AgentLimits;
  /** True while Redis is short of memory: nothing is taken that needs new room. */
  readonly isShortOfMemory: boolean;
  /** That the pod knows of the partition; undefined where the window has no other one. */
  readonly highestEpoch: number | undefined;
}

/** A batch of plain messages goes to a script of its own: most are that, and it costs Redis less. */
export function encodeBatch(items: readonly PlacedItem[], context: AcceptContext): AcceptCall {
  return items.every(isPlain) ? encodeMessages(items, context) : encodeItems(items, context);
}

function encodeMessages(items: readonly PlacedItem[], context: AcceptContext): AcceptCall {
  const { partition: p, keys: names } = context;
  const keys = [
    partitionKeys.window(p),
    names.presence,
    names.online,
    names.route,
    names.counters,
    names.published,
    names.acceptFrom,
  ];
  const numberOf = keyNumbers(keys);
  const args: (string | number)[] = [
    ...commonArgs(context),
    WINDOW_LIMITS.minutes,
    context.highestEpoch === undefined ? "" : podLeases(p, numberOf),
  ];
  for (const run of runs(items)) {
    const first = run[0] as PlacedItem;
    const { key, endsAt } = guardBucketOf(p, first);
    args.push(run.length * 3 + 4, endsAt, numberOf(key), first.origin, issuerDigestOf(first));
    for (const item of run) args.push(item.digest, item.envelope.to as string, textOf(item));
  }
  return { script: "accept_messages", keys, args };
}

function encodeItems(items: readonly PlacedItem[], context: AcceptContext): AcceptCall {
  const { partition: p, keys: names } = context;
  const keys = [
    partitionKeys.window(p),
    names.presence,
    names.online,
    names.route,
    names.clock,
    names.counters,
    names.proofs,
    names.lastOnlineProof,
    names.published,
    names.acceptFrom,
  ];
  const numberOf = keyNumbers(keys);
  const args: (string | number)[] = [
    ...commonArgs(context),
    sessionBounds(context.proofFreshnessMs),
    SESSION_LIMITS.retainedProofs,
    SESSION_LIMITS.keepAfterEndMs,
    HTTP_LIMITS.idempotencyMs,
    WINDOW_LIMITS.minutes,
    circumstances(items, context, numberOf),
  ];
  const add = (kind: string, item: PlacedItem, details: readonly (string | number)[]) => {
    const { key, endsAt } = guardBucketOf(p, item);
    args.push(details.length + 3, kind, endsAt, numberOf(key), ...details);
  };
  for (const run of runs(items)) {
    const first = run[0] as PlacedItem;
    if (isPlain(first)) add("messages", first, [first.origin, issuerDigestOf(first), ...run.flatMap(plainDetails)]);
    else add(first.kind, first, [first.digest, addresseeOf(first), ...detailsOf(first, context, numberOf)]);
  }
  return { script: "accept", keys, args };
}

/** What both scripts are told first. */
function commonArgs({ partition, windowId, offlineAfterMs }: AcceptContext): readonly (string | number)[] {
  const { staleAfterMs, forgetAfterMs } = PRESENCE_LIMITS;
  const channelPrefix = partitionKeys.podChannelPrefix(partition);
  return [windowId, channelPrefix, staleAfterMs, offlineAfterMs, forgetAfterMs, GUARD_AHEAD_MS];
}

/** One argument, which says no more than it must where the window has one partition: each word more costs every call. */
function circumstances(
  items: readonly PlacedItem[],
  { partition, isShortOfMemory, highestEpoch }: AcceptContext,
  numberOf: (key: string) => number,
): number | string {
  const isShort = isShortOfMemory ? 1 : 0;
  if (highestEpoch === undefined) return isShort;
  const epoch = items.some(isOfPresence) ? highestEpoch : 0;
  return `${isShort} ${podLeases(partition, numberOf)} ${epoch}`;
}

/** What tells the scripts which pods are gone, over several partitions. */
function podLeases(partition: number, numberOf: (key: string) => number): string {
  const { podLeaseMs, podLeaseGapMs } = REDIS_LIMITS;
  return `${numberOf(partitionKeys.pods(partition))} ${podLeaseMs} ${podLeaseGapMs}`;
}

/** A register or heartbeat. */
function isOfPresence({ kind }: Pick<PlacedItem, "kind">): boolean {
  return kind === "register" || kind === "heartbeat";
}

/** A message without session and without claim: its answer is its target's status alone. */
export function isPlain({ kind, claim }: PlacedItem): boolean {
  return kind === "message" && claim === undefined;
}

/** One argument, which only a call with sessions reads: each argument more costs every call. */
function sessionBounds(proofFreshnessMs: number): string {
  return [
    SESSION_LIMITS.maxPendingPerTarget,
    SESSION_LIMITS.maxPendingPerRequesterAtTarget,
    SESSION_LIMITS.openedPerMinute,
    SESSION_LIMITS.openedWindowMs,
    SESSION_LIMITS.maxDecidedKept,
    SESSION_LIMITS.decidedKeptMs,
    proofFreshnessMs,
  ].join(" ");
}

/** The issuer that answers for an item's sender; '' where the sender's key is listed. */
function issuerOf({ principal }: PlacedItem): Principal | "" {
  return isIssuer(principal) ? principal : "";
}

/** The same, as scripts have it. */
function issuerDigestOf(item: PlacedItem): string {
  const issuer = issuerOf(item);
  return issuer === "" ? "" : holderDigestOf(issuer);
}

/** Consecutive plain messages of one origin, issuer and guard bucket share one head of arguments; every other item stands alone. */
function runs(items: readonly PlacedItem[]): PlacedItem[][] {
  const found: PlacedItem[][] = [];
  let last: PlacedItem | undefined;
  for (const item of items) {
    const continues =
      last !== undefined &&
      isPlain(last) &&
      isPlain(item) &&
      last.origin === item.origin &&
      issuerOf(last) === issuerOf(item) &&
      guardSpanOf(last) === guardSpanOf(item);
    if (continues) found.at(-1)?.push(item);
    else found.push([item]);
    last = item;
  }
  return found;
}

function plainDetails(item: PlacedItem): string[] {
  return [item.digest, item.envelope.to as string, textOf(item)];
}

/** What is published of an item: nothing else of a trace passes through Redis. */
function textOf({ text, acceptSpan }: PlacedItem): string {
  return textWithTrace(text, acceptSpan?.traceparent);
}

/** The agent whose partition an item belongs to: the target, or the sender of an `agent.*` envelope. */
export function addresseeOf(item: Pick<PlacedItem, "envelope" | "kind">): string {
  const { envelope } = item;
  return isOfPresence(item) ? envelope.from : (envelope.to as string);
}

/** Lifetime of a requested session. */
function ttlMinutesOf(payload: { readonly ttl_minutes?: unknown }): number {
  return typeof payload.ttl_minutes === "number" ? payload.ttl_minutes : SESSION_LIMITS.ttlMinutesDefault;
}

function detailsOf(item: PlacedItem, context: AcceptContext, numberOf: (key: string) => number): (string | number)[] {
  const { envelope, text, origin, sessionId } = item;
  const { keys } = context;
  const agent = addresseeOf(item);
  if (isOfPresence(item)) {
    if (context.pod === undefined) throw new Error(`a ${item.kind} is of a pod's connection`);
    const mark = item.isCongested?.() ? CONGESTED : "";
    const waiting = [numberOf(keys.pending(agent)), numberOf(keys.decided(agent))];
    return [
      context.pod,
      item.connection,
      mark,
      ...waiting,
      ...agentLimitArgs(item, keys, context.limits, numberOf),
      item.kind === "register" ? acceptFromOf(envelope.payload) : (item.acceptFrom ?? NOT_KNOWN),
      keys.principalPrefix,
      keys.session(SESSION_ID_PREFIX),
      ...credentialOf(item, keys, numberOf),
    ];
  }
  if (item.kind === "session_decision") {
    const { state, decidedAt } = item.prepared as PreparedDecision;
    const decided = numberOf(keys.decided(agent));
    return [origin, textOf(item), sessionId, textDigestOf(text), decided, state, decidedAt, envelope.from];
  }
  const claim = claimOf(item, numberOf);
  return [
    origin,
    textOf(item),
    ...(item.kind === "session_request" ? requestDetails(item, keys, numberOf) : []),
    ...claim,
  ];
}

function requestDetails(
  item: PlacedItem,
  names: PartitionKeys,
  numberOf: (key: string) => number,
): (string | number)[] {
  const { envelope, sessionId } = item;
  const principal = holderDigestOf(item.principal);
  const prepared = (item.prepared as PreparedRequest | undefined) ?? NOTHING_ELSEWHERE;
  const keys = [
    names.session(sessionId),
    names.pending(addresseeOf(item)),
    names.opened(envelope.from),
    names.principal(principal),
    names.opened(principal),
  ];
  const ttl = ttlMinutesOf(envelope.payload);
  const factor = boundsFactorOf(item.principal);
  const most = [sessionBound("pending_sessions", factor), sessionBound("key_opened_sessions", factor)];
  const elsewhere = [prepared.pendingElsewhere, prepared.openedElsewhere, prepared.openedByPrincipalElsewhere];
  const ofAgent = isIssuer(item.principal) ? numberOf(names.principal(envelope.from)) : "";
  const agents = [ofAgent, prepared.pendingOfRequesterElsewhere, factor];
  const within = item.isWithinPrincipal ? numberOf(names.proofsWithin) : "";
  return [sessionId, ...keys.map(numberOf), principal, envelope.from, ttl, ...elsewhere, ...most, ...agents, within];
}

function credentialOf(
  { credential, envelope }: PlacedItem,
  keys: PartitionKeys,
  numberOf: (key: string) => number,
): (string | number)[] {
  if (credential === undefined) return [];
  const { expiresAt, presented } = credential;
  const key = numberOf(keys.credential(envelope.from));
  return presented === undefined ? [key, expiresAt] : [key, expiresAt, formatCredential(presented)];
}

function claimOf(item: PlacedItem, numberOf: (key: string) => number): (string | number)[] {
  if (item.claim === undefined) return [];
  return [
    numberOf(partitionKeys.idempotency(item.partition, item.claim.digest)),
    item.claim.bodyDigest,
    item.envelope.id,
  ];
}
