import type { DeliveryStatus } from "relay-protocol/contract/presence.ts";
import type { SessionStatus, TargetDecision } from "relay-protocol/contract/session.ts";
import { partitionOfSession } from "../acceptance/acceptance.ts";
import { CONGESTED, type Presence, presenceOf, timeOf } from "../presence/presence.ts";
import { partitionOf } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import type { PartitionKeys } from "../redis/window-keys.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import {
  decisionOf,
  parsePendingSession,
  parseSession,
  parseTargetProof,
  type SessionProof,
  type SessionRecord,
  type SessionState,
  statusOf,
} from "./session-records.ts";

/** A target, and one of its sessions if asked for. */
export interface TargetQuery {
  readonly agent: string;
  /** Null to ask for no session. */
  readonly sessionId: string | null;
}

/** One target in the window. Times are Unix ms. Source: docs/reports.md#one-target. */
export interface Target {
  readonly agent: string;
  readonly presence: Presence;
  /** The last request that was accepted while the target was online. Null once it is no longer fresh. */
  readonly lastOnlineProof: SessionProof | null;
  /** Acceptance of the newest kept request: the last proof, or a session that waits for the target. */
  readonly lastRequestAt: number | null;
  /** The session of the query. Null without an id, if it is not kept, or if it is another target's. */
  readonly session: TargetSession | null;
}

/** One session of a target. */
export interface TargetSession {
  readonly requester: string;
  readonly decision: TargetDecision;
  readonly createdAt: number;
  /** Status of the target at acceptance. Unless `online`, the target has not received the request. */
  readonly delivery: DeliveryStatus;
  /** True if the session expired because newer sessions took its place before its end. */
  readonly isDisplaced: boolean;
}

interface TargetOptions {
  readonly offlineAfterMs: number;
  readonly proofFreshnessMs: number;
}

/** Reads one target in one round trip. @throws ServiceError `unavailable`. */
export async function readTarget(
  link: RedisCalls,
  window: ProcessWindow,
  { agent, sessionId }: TargetQuery,
  { offlineAfterMs, proofFreshnessMs }: TargetOptions,
): Promise<Target> {
  // A session is in its target's partition. No session has the empty id.
  const read = ({ presence, online, route, pending, session }: PartitionKeys) =>
    link.run(
      "read_target",
      [presence, online, route, pending(agent), session(sessionId ?? "")],
      [agent, sessionId ?? ""],
    );
  const [now, lastSeen, heldSince, mark, proof, pending, state, record] = (await window.read(
    partitionOf(agent, window.partitions),
    read,
  )) as [...[string, string, string, string, string, string], SessionState | "", string];
  const lastProof = proof === "" ? null : parseTargetProof(proof, agent);
  const isFresh = lastProof !== null && Number(now) < lastProof.acceptedAt + proofFreshnessMs;
  const lastOnlineProof = isFresh ? lastProof : null;
  const accepted = [lastOnlineProof?.acceptedAt, pending === "" ? undefined : parsePendingSession(pending).createdAt];
  return {
    agent,
    presence: presenceOf(Number(now), timeOf(lastSeen), timeOf(heldSince), offlineAfterMs, mark === CONGESTED),
    lastOnlineProof,
    lastRequestAt: latest(accepted.filter((at) => at !== undefined)),
    session: state === "" ? null : sessionOf(state, record, Number(now)),
  };
}

function sessionOf(state: SessionState, record: string, now: number): TargetSession {
  const { requester, createdAt, expiresAt, delivery } = parseSession(record);
  return { requester, decision: decisionOf(state), createdAt, delivery, isDisplaced: state === "e" && now < expiresAt };
}

function latest(times: readonly number[]): number | null {
  return times.length === 0 ? null : Math.max(...times);
}

/** A session in the window: ids, times and states. Source: docs/protocol.md#sessions. */
export interface Session extends SessionRecord {
  readonly sessionId: string;
  readonly status: SessionStatus;
}

/**
 * Reads one session.
 * @returns null if there is none, or if it ended more than an hour ago.
 * @throws ServiceError `unavailable`.
 */
export async function readSession(link: RedisCalls, window: ProcessWindow, sessionId: string): Promise<Session | null> {
  const p = partitionOfSession(sessionId, window.partitions);
  if (p === undefined) return null;
  const first = await window.read(p, ({ session }) => link.command("GET", session(sessionId)));
  if (typeof first !== "string") return null;
  const { target } = parseSession(first);
  const reply = (await window.read(p, ({ session, pending }) =>
    link.run("read_session", [session(sessionId), pending(target)], [sessionId]),
  )) as string[];
  if (reply.length === 0) return null;
  const [state, record] = reply as [SessionState, string];
  return { sessionId, status: statusOf(state), ...parseSession(record) };
}
