import { ERRORS, type ErrorCode, type FieldError } from "../wire/errors.ts";
import { SESSION_LIMITS } from "../wire/limits.ts";

/** Place of data on a Redis Cluster: a partition, or the control slot with the data of the whole window. */
export type Place = number | "control";

/** Parts of a refusal, for a problem document and an error frame alike. */
interface PartRefusal {
  readonly detail: string;
  readonly hint: string;
}

/**
 * Text of an `unavailable` if a part of the relay is out of reach, and other parts are not.
 * Source: docs/protocol.md#errors.
 */
export function partRefusal(place: Place): PartRefusal {
  const part = place === "control" ? "What is of all partitions of the relay" : `Partition ${place} of the relay`;
  return {
    detail: `${part} is out of reach, the rest of it is not; the outcome is unknown.`,
    hint: `${ERRORS.unavailable.hint} Nothing else helps until that part is back: /ready names all that are away. Agents of other partitions go on.`,
  };
}

/** By limit: its name in the manifests if they publish it, and its subject. */
const LIMITS = {
  api_key_requests: ["gateway_requests_per_minute", "of this API key on this endpoint"],
  failed_keys: ["failed_keys_per_minute", "of this address"],
  public_requests: ["public_requests_per_minute", "of this address on this surface"],
  opened_sessions: ["sessions_opened_per_minute", "of this requester"],
  key_opened_sessions: ["sessions_opened_per_minute_per_key", "of this key or its issuer"],
  pending_sessions: ["max_pending_sessions_per_key", "of this key or its issuer"],
  agent_pending_sessions: ["max_pending_sessions_per_key", "of this agent, less what its issuer's others have taken,"],
  address_connections: ["connections_per_address", "of this address"],
  address_unregistered: ["unregistered_connections_per_address", "of this address"],
  address_opens: ["connections_opened_per_minute", "of this address"],
} as const;

/** Limits of session requests, named as in `relay_limits_total`. */
export type SessionLimit = "opened_sessions" | "key_opened_sessions" | "pending_sessions" | "agent_pending_sessions";

/** Text of a `rate_limited`: the limit that was reached, and how long to wait. Source: docs/protocol.md#http. */
interface RateRefusal {
  readonly detail: string;
  readonly hint: string;
  readonly retryAfterMs: number;
}

/** @param most what the limit allows. */
export function rateRefusal(limit: keyof typeof LIMITS, most: number, retryAfterMs: number): RateRefusal {
  const [name, whose] = LIMITS[limit];
  const ms = Math.max(1, Math.ceil(retryAfterMs));
  return {
    detail: `The limit ${name} ${whose} is reached: ${most}.`,
    hint: `Wait ${ms} ms, as retry_after_ms says, then send the same again.`,
    retryAfterMs: ms,
  };
}

/** `rateRefusal` for a session request. @param factor as in `sessionBound`. 1 for an API key. */
export function sessionRefusal(limit: SessionLimit, retryAfterMs: number, factor = 1): RateRefusal {
  return rateRefusal(limit, sessionBound(limit, factor), retryAfterMs);
}

/** Number of sessions that a limit allows. @param factor multiple of one key's bounds for the request's principal. */
export function sessionBound(limit: SessionLimit, factor: number): number {
  if (limit === "opened_sessions") return SESSION_LIMITS.openedPerMinute;
  if (limit === "key_opened_sessions") return SESSION_LIMITS.openedPerMinuteOfPrincipal * factor;
  if (limit === "agent_pending_sessions") return SESSION_LIMITS.maxPendingPerPrincipal;
  return SESSION_LIMITS.maxPendingPerPrincipal * factor;
}

/** Details of a refusal beyond its code. */
interface RefusalDetails {
  /** Replaces the code's title. */
  readonly detail?: string;
  /** Replaces the code's hint. */
  readonly hint?: string;
  readonly errors?: readonly FieldError[];
  readonly retryAfterMs?: number;
  /** Additional members of the problem document. Source: RFC 9457, section 3.2. */
  readonly members?: object;
}

/** A refusal for a client. `message` never contains data that the client sent. */
export class ServiceError extends Error {
  readonly code: ErrorCode;
  readonly hint: string;
  readonly errors: readonly FieldError[] | undefined;
  readonly retryAfterMs: number | undefined;
  readonly members: object;

  constructor(code: ErrorCode, { detail, hint, errors, retryAfterMs, members = {} }: RefusalDetails = {}) {
    super(detail ?? ERRORS[code].title);
    this.name = "ServiceError";
    this.code = code;
    this.hint = hint ?? ERRORS[code].hint;
    this.errors = errors;
    this.retryAfterMs = retryAfterMs;
    this.members = members;
  }
}
