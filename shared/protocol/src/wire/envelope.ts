import { ISSUER_PATTERN } from "./credential.ts";
import type { FieldError } from "./errors.ts";
import { AGENT_ID_PATTERN, AGENT_PATTERN_PATTERN } from "./ids.ts";
import { CREDENTIAL_LIMITS, SESSION_LIMITS, TEXT_LIMITS } from "./limits.ts";

/** Field order of the canonical text. Source: docs/protocol.md#signatures. */
export const CANONICAL_SIGNING_ORDER = ["id", "type", "from", "to", "task_id", "payload", "ts", "key_id"] as const;

export const ENVELOPE_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
export const MESSAGE_TYPE_PATTERN = /^message\.[a-z][a-z0-9_]{0,31}$/;
export const KEY_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
export const SESSION_ID_PREFIX = "ses_";
export const SESSION_ID_PATTERN = /^ses_[0-9a-hjkmnp-tv-z]{26}$/;
/** base64url without padding: 43 characters are 32 bytes (HMAC-SHA256), 86 are 64 bytes (Ed25519). */
const SIGNATURE_PATTERN = /^(?:[A-Za-z0-9_-]{43}|[A-Za-z0-9_-]{86})$/;
const SHA256_PATTERN = /^[A-Za-z0-9_-]{43}$/;

/** Prefix of an issuer's entry in `accept_from`. Source: docs/protocol.md#accept_from. */
export const ISSUER_ENTRY_PREFIX = "issuer:";

const unanchored = ({ source }: RegExp) => source.replace(/^\^/, "").replace(/\$$/, "");
const ACCEPT_FROM_PATTERN = new RegExp(
  `^(?:${unanchored(AGENT_PATTERN_PATTERN)}|${ISSUER_ENTRY_PREFIX}${unanchored(ISSUER_PATTERN)})$`,
);

/** A parsed JSON object. */
export type JsonObject = { readonly [name: string]: unknown };

/** An envelope with a checked shape. Its signature is not checked. Source: docs/protocol.md#envelopes. */
export interface Envelope {
  readonly id: string;
  readonly type: string;
  readonly from: string;
  readonly to?: string;
  readonly task_id?: string;
  readonly payload: JsonObject;
  /** Unix ms. */
  readonly ts: number;
  readonly key_id: string;
  readonly sig: string;
}

/** An envelope before it is signed. */
export type UnsignedEnvelope = Omit<Envelope, "sig">;

/** How the relay handles an envelope. Application messages (`message.<word>`) have the kind `message`. */
export type EnvelopeKind = "register" | "heartbeat" | "message" | "session_request" | "session_decision";

const KIND_OF_TYPE: ReadonlyMap<string, EnvelopeKind> = new Map([
  ["agent.register", "register"],
  ["agent.heartbeat", "heartbeat"],
  ["session.request", "session_request"],
  ["session.approve", "session_decision"],
  ["session.reject", "session_decision"],
]);

/** @returns undefined for an unknown type. */
export function kindOf(type: string): EnvelopeKind | undefined {
  return KIND_OF_TYPE.get(type) ?? (MESSAGE_TYPE_PATTERN.test(type) ? "message" : undefined);
}

/** For readers of errors. */
export const TYPE_RULE =
  "must be agent.register, agent.heartbeat, message.send, message.<word> (1–32 of a–z 0–9 _, a letter first), session.request, session.approve or session.reject";

/** Rule for the value of a member. Bounds are inclusive: Unicode code points of a text, items of a list. */
export interface TextRule {
  readonly is: "text";
  readonly optional?: true;
  readonly pattern?: RegExp;
  /** Replaces "must match the pattern". */
  readonly says?: string;
  readonly min?: number;
  readonly max?: number;
}
export interface IntegerRule {
  readonly is: "integer";
  readonly optional?: true;
  readonly min?: number;
  readonly max?: number;
}
interface ListRule {
  readonly is: "list";
  readonly optional?: true;
  readonly of: TextRule;
  readonly max: number;
}
interface AnyRule {
  readonly is: "anything";
  readonly optional: true;
}
export type MemberRule = TextRule | IntegerRule | ListRule | AnyRule;
export type MemberRules = Readonly<Record<string, MemberRule>>;

const AGENT_ID = {
  is: "text",
  pattern: AGENT_ID_PATTERN,
  says: "must be agent://<name>: a-z, 0-9, '.', '_', '-'",
} as const satisfies TextRule;

/** Members of every envelope except `type` and `payload`, which depend on the kind. */
export const ENVELOPE_MEMBERS = {
  id: { is: "text", pattern: ENVELOPE_ID_PATTERN },
  from: AGENT_ID,
  task_id: { is: "text", optional: true, min: 1, max: TEXT_LIMITS.taskId },
  ts: { is: "integer" },
  key_id: { is: "text", pattern: KEY_ID_PATTERN },
  sig: {
    is: "text",
    pattern: SIGNATURE_PATTERN,
    says: "must be 86 characters of base64url (Ed25519) or 43 (HMAC-SHA256)",
  },
  to: AGENT_ID,
} as const satisfies MemberRules;

/** Members of payloads by kind. A payload may hold further members. */
export const PAYLOAD_MEMBERS = {
  register: {
    credential: { is: "text", optional: true, max: CREDENTIAL_LIMITS.maxCharacters },
    relay: { is: "text", optional: true, max: TEXT_LIMITS.relay },
    connection_id: { is: "anything", optional: true },
    accept_from: {
      is: "list",
      optional: true,
      of: {
        is: "text",
        pattern: ACCEPT_FROM_PATTERN,
        says: "must be an agent id, a namespace like agent://acme.*, or issuer:<name>",
      },
      max: TEXT_LIMITS.acceptFrom,
    },
    capabilities: { is: "list", optional: true, of: { is: "text" }, max: TEXT_LIMITS.capabilities },
    label: { is: "text", optional: true, max: TEXT_LIMITS.label },
  },
  heartbeat: {},
  message: {},
  session_request: {
    purpose: { is: "text", min: 1, max: TEXT_LIMITS.purpose },
    ttl_minutes: {
      is: "integer",
      optional: true,
      min: SESSION_LIMITS.ttlMinutesMin,
      max: SESSION_LIMITS.ttlMinutesMax,
    },
    intro: { is: "text", optional: true, max: TEXT_LIMITS.intro },
    scope: { is: "text", optional: true, max: TEXT_LIMITS.scope },
    expected_frequency: { is: "text", optional: true, max: TEXT_LIMITS.expectedFrequency },
  },
  session_decision: {
    session_id: { is: "text", pattern: SESSION_ID_PATTERN, says: "must be the session_id of a session request" },
    request_sha256: {
      is: "text",
      optional: true,
      pattern: SHA256_PATTERN,
      says: "must be a SHA-256 in base64url",
    },
    reason: { is: "text", optional: true, max: TEXT_LIMITS.reason },
  },
} as const satisfies Record<EnvelopeKind, MemberRules>;

/** Kinds that need no target. */
const WITHOUT_TARGET: readonly EnvelopeKind[] = ["register", "heartbeat"];

/** A session is between two agents. */
export function isBetweenTwo({ from, to }: { readonly from?: unknown; readonly to?: unknown }): boolean {
  return from !== to;
}
export const NOT_BETWEEN_TWO = "must be another agent than from";

/**
 * Problems of an envelope's members, by their names on the wire: `payload.purpose`. Empty if there are none.
 * @param envelope parsed JSON. Only own members count.
 */
export function envelopeProblems(envelope: JsonObject): FieldError[] {
  const { type, payload } = envelope;
  const kind = typeof type === "string" ? kindOf(type) : undefined;
  if (kind === undefined) return [{ field: "type", message: TYPE_RULE }];
  const { to, ...always } = ENVELOPE_MEMBERS;
  const rules = { ...always, to: WITHOUT_TARGET.includes(kind) ? ({ ...to, optional: true } as const) : to };
  const unknown = Object.keys(envelope).filter((name) => !Object.hasOwn(rules, name) && !isOfKind(name));
  const problems = [
    ...unknown.map((field) => ({ field, message: "is not a member of an envelope" })),
    ...memberProblems(envelope, rules, ""),
    ...(isObject(payload)
      ? memberProblems(payload, PAYLOAD_MEMBERS[kind], "payload.")
      : [{ field: "payload", message: "must be a JSON object" }]),
  ];
  const isSession = kind === "session_request" || kind === "session_decision";
  if (problems.length > 0 || !isSession || isBetweenTwo(envelope)) return problems;
  return [{ field: "to", message: NOT_BETWEEN_TWO }];
}

function isOfKind(name: string): boolean {
  return name === "type" || name === "payload";
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** @param path prefix of the field names. */
function memberProblems(members: JsonObject, rules: MemberRules, path: string): FieldError[] {
  return Object.entries(rules).flatMap(([name, rule]) => {
    const value = Object.hasOwn(members, name) ? members[name] : undefined;
    const message = memberProblem(value, rule);
    return message === undefined ? [] : [{ field: path + name, message }];
  });
}

function memberProblem(value: unknown, rule: MemberRule): string | undefined {
  if (value === undefined) return rule.optional ? undefined : "is required";
  if (rule.is === "anything") return undefined;
  if (rule.is === "text") return textProblem(value, rule);
  if (rule.is === "integer") return integerProblem(value, rule);
  if (!Array.isArray(value)) return "must be a list";
  if (value.length > rule.max) return `must have at most ${rule.max} items`;
  // Unlike `map`, it also looks at holes.
  return Array.from(value, (item) => textProblem(item, rule.of)).find((problem) => problem !== undefined);
}

function textProblem(value: unknown, { pattern, says, min = 0, max = Number.POSITIVE_INFINITY }: TextRule) {
  if (typeof value !== "string") return "must be a text";
  if (pattern !== undefined && !pattern.test(value)) return says ?? "must match the pattern";
  if (isOfLength(value, min, max)) return undefined;
  return min === 0 ? `must have at most ${max} characters` : `must have ${min} to ${max} characters`;
}

function integerProblem(
  value: unknown,
  { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY }: IntegerRule,
) {
  if (!Number.isSafeInteger(value)) return "must be a whole number";
  return Number(value) >= min && Number(value) <= max ? undefined : `must be a whole number from ${min} to ${max}`;
}

/** Whether a text has `min` to `max` Unicode code points. */
function isOfLength(text: string, min: number, max: number): boolean {
  // A code point has at most two UTF-16 units, so a longer text needs no counting.
  if (text.length > 2 * max) return false;
  if (text.length <= max && text.length >= 2 * min) return true;
  let length = 0;
  for (const _ of text) length += 1;
  return length >= min && length <= max;
}
