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
import { CONGESTED } from "../presence/presence.ts";
import { formatCredential } from "../public-keys/credential-records.ts";
import { keyNumbers, partitionKeys } from "../redis/keys.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";
import type { Reply } from "../redis/scripts.ts";
import type { PartitionKeys } from "../redis/window-keys.ts";
import { parseDecidedSession, parsePendingSession, type SessionState, statusOf } from "../sessions/session-records.ts";
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
 * Decodes a reply of `accept` or `accept_messages`: the outcome of each item of a batch, in order. Pure.
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

/** @param now Unix ms by the clock of Redis. */
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
  if (isOfPresence(item)) return presence(settled, reply.slice(1), now, sentAt);
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

/** A delivery status has no `offline`: it is `stale`. Source: docs/protocol.md#presence. */
function deliveryStatus(status: PresenceStatus): DeliveryStatus {
  return status === "offline" ? "stale" : status;
}

/**
 * A decision is already in effect at acceptance.
 * @param state of a session request.
 * @returns null for an envelope without a session.
 */
function sessionStatusAfter({ kind, prepared }: PlacedItem, state: SessionState | undefined): SessionStatus | null {
  const after = kind === "session_decision" ? (prepared as PreparedDecision).state : state;
  return after === undefined ? null : statusOf(after);
}

const NOTHING_ELSEWHERE: PreparedRequest = {
  kind: "request",
  pendingElsewhere: 0,
  pendingOfRequesterElsewhere: 0,
  openedElsewhere: 0,
  openedByPrincipalElsewhere: 0,
};

/** One call of an accepting script. The link adds the deadline. */
interface AcceptCall {
  readonly script: "accept" | "accept_messages";
  readonly keys: string[];
  readonly args: (string | number)[];
}

/** Circumstances of a batch. */
interface AcceptContext {
  readonly partition: number;
  readonly windowId: string;
  /** Keys of the partition. */
  readonly keys: PartitionKeys;
  /** The pod whose connections sent the items. Undefined if no item is a register or heartbeat. */
  readonly pod: string | undefined;
  readonly offlineAfterMs: number;
  /** How long a target's proof stays fresh, in ms. */
  readonly proofFreshnessMs: number;
  /** Limits of the partition. */
  readonly limits: AgentLimits;
  /** True while Redis is short of memory. Then the scripts refuse what needs new room. */
  readonly isShortOfMemory: boolean;
  /** The highest epoch that the pod knows in the partition. Undefined if the window has one partition. */
  readonly highestEpoch: number | undefined;
}

/**
 * Encodes a batch of one partition as the keys and arguments of `accept` or `accept_messages`. Most batches hold plain
 * messages alone. Their own script costs Redis less. Pure.
 */
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
    if (isPlain(first))
      add("plain_messages", first, [first.origin, issuerDigestOf(first), ...run.flatMap(plainDetails)]);
    else
      add(first.kind === "message" ? "claimed_message" : first.kind, first, [
        first.digest,
        addresseeOf(first),
        ...detailsOf(first, context, numberOf),
      ]);
  }
  return { script: "accept", keys, args };
}

/** The first arguments of both scripts, after the deadline. */
function commonArgs({ partition, windowId, offlineAfterMs }: AcceptContext): readonly (string | number)[] {
  const { staleAfterMs, forgetAfterMs } = PRESENCE_LIMITS;
  const channelPrefix = partitionKeys.podChannelPrefix(partition);
  return [windowId, channelPrefix, staleAfterMs, offlineAfterMs, forgetAfterMs, GUARD_AHEAD_MS];
}

/**
 * One argument, because each further word costs every call. With one partition it says only whether memory is short.
 */
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

/** Several partitions only: the scripts find out from these words which pods are gone. */
function podLeases(partition: number, numberOf: (key: string) => number): string {
  const { podLeaseMs, podLeaseGapMs } = REDIS_LIMITS;
  return `${numberOf(partitionKeys.pods(partition))} ${podLeaseMs} ${podLeaseGapMs}`;
}

function isOfPresence({ kind }: Pick<PlacedItem, "kind">): boolean {
  return kind === "register" || kind === "heartbeat";
}

/** A message without a session and without a claim. Its answer is its target's status alone. */
function isPlain({ kind, claim }: PlacedItem): boolean {
  return kind === "message" && claim === undefined;
}

/** One argument, because each further argument costs every call. Only calls with sessions read it. */
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

/** The issuer that answers for an item's sender, or '' if the sender's key is listed. */
function issuerOf({ principal }: PlacedItem): Principal | "" {
  return isIssuer(principal) ? principal : "";
}

/** The issuer's digest for the scripts, or ''. */
function issuerDigestOf(item: PlacedItem): string {
  const issuer = issuerOf(item);
  return issuer === "" ? "" : holderDigestOf(issuer);
}

/**
 * Consecutive plain messages of one origin, issuer and guard bucket share their first arguments. Every other item forms
 * its own run.
 */
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

/** The published text. Only `traceparent` of a trace passes through Redis. */
function textOf({ text, acceptSpan }: PlacedItem): string {
  return textWithTrace(text, acceptSpan?.traceparent);
}

/** The agent whose partition an item belongs to: the target, or the sender of an `agent.*` envelope. */
export function addresseeOf(item: Pick<PlacedItem, "envelope" | "kind">): string {
  const { envelope } = item;
  return isOfPresence(item) ? envelope.from : (envelope.to as string);
}

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
