import { z } from "zod";
import { CREDENTIAL_LIMITS, ENVELOPE_LIMITS, SESSION_LIMITS, TEXT_LIMITS } from "../wire/limits.ts";
import { AcceptFrom } from "./accept-from.ts";
import { AgentId } from "./agent-id.ts";

/** Field order of the canonical text. Source: docs/protocol.md#signatures. */
export const CANONICAL_SIGNING_ORDER = ["id", "type", "from", "to", "task_id", "payload", "ts", "key_id"] as const;

export const ENVELOPE_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/;
export const MESSAGE_TYPE_PATTERN = /^message\.[a-z][a-z0-9_]{0,31}$/;
export const KEY_ID_PATTERN = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
/** base64url without padding: 43 characters are 32 bytes (HMAC-SHA256), 86 are 64 bytes (Ed25519). */
const SIGNATURE_PATTERN = /^(?:[A-Za-z0-9_-]{43}|[A-Za-z0-9_-]{86})$/;
export const SESSION_ID_PREFIX = "ses_";
export const SESSION_ID_PATTERN = /^ses_[0-9a-hjkmnp-tv-z]{26}$/;

/** For a reader of errors. */
export const TYPE_RULE =
  "must be agent.register, agent.heartbeat, message.send, message.<word> (1–32 of a–z 0–9 _, a letter first), session.request, session.approve or session.reject";

/** How the relay handles an envelope; application messages (`message.<word>`) have kind `message`. */
export type EnvelopeKind = "register" | "heartbeat" | "message" | "session_request" | "session_decision";

/** A JSON object as it was parsed. */
export type JsonObject = { readonly [name: string]: unknown };

/** An envelope whose shape has been checked; its signature has not. Source: docs/protocol.md#envelopes. */
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

const text = (max: number) => z.string().min(1).max(max);

/** Envelope id: chosen by the signer and unique for it. */
export const EnvelopeId = z
  .string()
  .regex(ENVELOPE_ID_PATTERN)
  .meta({ id: "EnvelopeId", examples: ["env_00000000000000000000000000"] });
export const SessionId = z
  .string()
  .regex(SESSION_ID_PATTERN, "must be the session_id of a session request")
  .meta({ id: "SessionId", examples: ["ses_00000000000000000000000000"] });
export const TtlMinutes = z.int().min(SESSION_LIMITS.ttlMinutesMin).max(SESSION_LIMITS.ttlMinutesMax);

const NOT_USED = "Its shape is checked; the relay neither uses nor keeps it, and shows it to nobody.";
const RegisterPayload = z
  .looseObject({
    credential: z.string().max(CREDENTIAL_LIMITS.maxCharacters).optional().meta({
      description: "The token of a key that the relay does not list.",
    }),
    relay: z.string().max(TEXT_LIMITS.relay).optional().meta({
      description: "Required with `credential`: the host that you dialled, with a non-default port.",
    }),
    connection_id: z.unknown().optional().meta({
      description: "That of `hello`, as text.",
    }),
    accept_from: AcceptFrom.optional(),
    capabilities: z.array(z.string()).max(TEXT_LIMITS.capabilities).optional().meta({ description: NOT_USED }),
    label: z.string().max(TEXT_LIMITS.label).optional().meta({ description: NOT_USED }),
  })
  .meta({ id: "RegisterPayload" });
const AnyPayload = z.looseObject({});
export const SessionRequestPayload = z
  .looseObject({
    purpose: text(TEXT_LIMITS.purpose),
    ttl_minutes: TtlMinutes.optional(),
    intro: z.string().max(TEXT_LIMITS.intro).optional(),
    scope: z.string().max(TEXT_LIMITS.scope).optional(),
    expected_frequency: z.string().max(TEXT_LIMITS.expectedFrequency).optional(),
  })
  .meta({ id: "SessionRequestPayload" });
const SessionDecisionPayload = z
  .looseObject({
    session_id: SessionId,
    request_sha256: z
      .string()
      .regex(/^[A-Za-z0-9_-]{43}$/, "must be a SHA-256 in base64url")
      .optional(),
    reason: z.string().max(TEXT_LIMITS.reason).optional(),
  })
  .meta({ id: "SessionDecisionPayload" });

const common = {
  id: EnvelopeId,
  from: AgentId,
  task_id: text(TEXT_LIMITS.taskId).optional(),
  ts: z.int(),
  key_id: z.string().regex(KEY_ID_PATTERN).meta({ id: "KeyId" }),
  sig: z
    .string()
    .regex(SIGNATURE_PATTERN, "must be 86 characters of base64url (Ed25519) or 43 (HMAC-SHA256)")
    .meta({ id: "Signature" }),
};
const toOptional = { to: AgentId.optional() };
const toRequired = { to: AgentId };

/** A session is between two agents. */
export function isBetweenTwo({ from, to }: { readonly from: string; readonly to: string }): boolean {
  return from !== to;
}
export const NOT_BETWEEN_TWO = { path: ["to"], error: "must be another agent than from" };

/** One schema for each kind of envelope. */
export const ENVELOPE_SCHEMAS = {
  register: z.strictObject({ ...common, ...toOptional, type: z.literal("agent.register"), payload: RegisterPayload }),
  heartbeat: z.strictObject({ ...common, ...toOptional, type: z.literal("agent.heartbeat"), payload: AnyPayload }),
  message: z.strictObject({
    ...common,
    ...toRequired,
    type: z.string().regex(MESSAGE_TYPE_PATTERN),
    payload: AnyPayload,
  }),
  session_request: z
    .strictObject({ ...common, ...toRequired, type: z.literal("session.request"), payload: SessionRequestPayload })
    .refine(isBetweenTwo, NOT_BETWEEN_TWO),
  session_decision: z
    .strictObject({
      ...common,
      ...toRequired,
      type: z.enum(["session.approve", "session.reject"]),
      payload: SessionDecisionPayload,
    })
    .refine(isBetweenTwo, NOT_BETWEEN_TWO),
} as const satisfies Record<EnvelopeKind, z.ZodType>;

/** Any signed envelope, as documents describe it. */
export const SignedEnvelope = z
  .union([
    ENVELOPE_SCHEMAS.register,
    ENVELOPE_SCHEMAS.heartbeat,
    ENVELOPE_SCHEMAS.message,
    ENVELOPE_SCHEMAS.session_request,
    ENVELOPE_SCHEMAS.session_decision,
  ])
  .meta({
    id: "SignedEnvelope",
    description: `A signed relay envelope. Its payload has at most ${ENVELOPE_LIMITS.maxPayloadDepth} levels and ${ENVELOPE_LIMITS.maxPayloadMembers} members and array elements in total.`,
  });

const KIND_OF_TYPE: ReadonlyMap<string, EnvelopeKind> = new Map([
  ["agent.register", "register"],
  ["agent.heartbeat", "heartbeat"],
  ["session.request", "session_request"],
  ["session.approve", "session_decision"],
  ["session.reject", "session_decision"],
]);

/** The kind of an envelope type; undefined for an unknown type. */
export function kindOf(type: string): EnvelopeKind | undefined {
  return KIND_OF_TYPE.get(type) ?? (MESSAGE_TYPE_PATTERN.test(type) ? "message" : undefined);
}
