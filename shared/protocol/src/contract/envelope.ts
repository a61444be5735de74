import { z } from "zod";
import {
  ENVELOPE_MEMBERS,
  type EnvelopeKind,
  type IntegerRule,
  isBetweenTwo,
  MESSAGE_TYPE_PATTERN,
  type MemberRule,
  type MemberRules,
  NOT_BETWEEN_TWO,
  PAYLOAD_MEMBERS,
  type TextRule,
} from "../wire/envelope.ts";
import { AGENT_ID_PATTERN } from "../wire/ids.ts";
import { ENVELOPE_LIMITS } from "../wire/limits.ts";

// Schemas of envelopes, made from the table of members in wire/envelope.ts. Source: docs/protocol.md#envelopes.

function text({ pattern, says, min, max }: TextRule): z.ZodString {
  let schema = pattern === undefined ? z.string() : z.string().regex(pattern, says);
  if (min !== undefined) schema = schema.min(min);
  return max === undefined ? schema : schema.max(max);
}

function integer({ min, max }: IntegerRule): z.ZodInt {
  let schema = z.int();
  if (min !== undefined) schema = schema.min(min);
  return max === undefined ? schema : schema.max(max);
}

/** The target in examples. Their sender is agent://alice. */
export const EXAMPLE_TARGET = "agent://bob";

export const AgentId = text(ENVELOPE_MEMBERS.from).meta({
  id: "AgentId",
  description: "Agent id: agent://<name>, ASCII lower case.",
  examples: ["agent://alice"],
});
/** An agent id without its scheme, as in paths. */
export const AgentName = z
  .string()
  .regex(
    new RegExp(AGENT_ID_PATTERN.source.replace("agent:\\/\\/", "")),
    "must be the name of an agent: a-z, 0-9, '.', '_', '-'",
  )
  .meta({ id: "AgentName", description: "An agent id without agent://.", examples: ["bob"] });
/** Envelope id. The signer chooses it, and uses it once. */
export const EnvelopeId = text(ENVELOPE_MEMBERS.id).meta({
  id: "EnvelopeId",
  examples: ["env_00000000000000000000000000"],
});
export const SessionId = text(PAYLOAD_MEMBERS.session_decision.session_id).meta({
  id: "SessionId",
  examples: ["ses_00000000000000000000000000"],
});
export const TtlMinutes = integer(PAYLOAD_MEMBERS.session_request.ttl_minutes);

const NOT_USED = { description: "Its shape is checked; the relay neither uses nor keeps it, and shows it to nobody." };
/** Descriptions of members in the documents, by name. */
const NOTES: Readonly<Record<string, { readonly id?: string; readonly description?: string }>> = {
  credential: { description: "The token of a key that the relay does not list." },
  relay: { description: "Required with `credential`: the host that you dialled, with a non-default port." },
  connection_id: { description: "That of `hello`, as text." },
  capabilities: NOT_USED,
  label: NOT_USED,
  key_id: { id: "KeyId" },
  sig: { id: "Signature" },
};
/** Members whose schemas other documents refer to. */
const NAMED: Readonly<Record<string, z.ZodType>> = {
  id: EnvelopeId,
  from: AgentId,
  to: AgentId,
  session_id: SessionId,
  ttl_minutes: TtlMinutes,
};

function member(name: string, rule: MemberRule): z.ZodType {
  const schema = NAMED[name] ?? unnamed(rule);
  if (name === "accept_from") return schema.meta(ACCEPT_FROM_NOTE).optional();
  const optional = rule.optional ? schema.optional() : schema;
  const note = NOTES[name];
  return note === undefined ? optional : optional.meta(note);
}

const ACCEPT_FROM_NOTE = {
  description:
    "Senders whose envelopes you accept: agent ids, namespaces like agent://acme.*, and issuer:<name> for all agents with a credential of that issuer. Every other sender's are refused with not_accepted_by_target, decisions about your own session requests excepted. Without it everyone is accepted. It holds until your next agent.register, also while you are offline.",
  examples: [["agent://bob", "agent://acme.*", "issuer:acme"]],
};

function unnamed(rule: MemberRule): z.ZodType {
  switch (rule.is) {
    case "text":
      return text(rule);
    case "integer":
      return integer(rule);
    case "list":
      return z.array(text(rule.of)).max(rule.max);
    case "anything":
      return z.unknown();
  }
}

function members<Rules extends MemberRules>(rules: Rules): { [Name in keyof Rules]: z.ZodType } {
  const schemas = Object.entries(rules).map(([name, rule]) => [name, member(name, rule)]);
  return Object.fromEntries(schemas);
}

const RegisterPayload = z.looseObject(members(PAYLOAD_MEMBERS.register)).meta({ id: "RegisterPayload" });
const AnyPayload = z.looseObject({});
export const SessionRequestPayload = z
  .looseObject(members(PAYLOAD_MEMBERS.session_request))
  .meta({ id: "SessionRequestPayload" });
const SessionDecisionPayload = z
  .looseObject(members(PAYLOAD_MEMBERS.session_decision))
  .meta({ id: "SessionDecisionPayload" });

const { to: toRequired, ...common } = members(ENVELOPE_MEMBERS);
const withTarget = { ...common, to: toRequired };
const perhapsWithTarget = { ...common, to: toRequired.optional() };

/** Arguments of the refinement with `isBetweenTwo`. */
export const BETWEEN_TWO = { path: ["to"], error: NOT_BETWEEN_TWO };

/** One schema for each kind of envelope. */
export const ENVELOPE_SCHEMAS = {
  register: z.strictObject({ ...perhapsWithTarget, type: z.literal("agent.register"), payload: RegisterPayload }),
  heartbeat: z.strictObject({ ...perhapsWithTarget, type: z.literal("agent.heartbeat"), payload: AnyPayload }),
  message: z.strictObject({ ...withTarget, type: z.string().regex(MESSAGE_TYPE_PATTERN), payload: AnyPayload }),
  session_request: z
    .strictObject({ ...withTarget, type: z.literal("session.request"), payload: SessionRequestPayload })
    .refine(isBetweenTwo, BETWEEN_TWO),
  session_decision: z
    .strictObject({
      ...withTarget,
      type: z.enum(["session.approve", "session.reject"]),
      payload: SessionDecisionPayload,
    })
    .refine(isBetweenTwo, BETWEEN_TWO),
} as const satisfies Record<EnvelopeKind, z.ZodType>;

/** Any signed envelope, for the documents. */
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
