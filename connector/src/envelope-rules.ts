import { agentIdProblem } from "./agent-id.ts";
import { RELAY_ERRORS, RelayError } from "./errors.ts";
import { type FieldError, withFields } from "./field-errors.ts";
import { membersOf } from "./frames.ts";
import { SESSION_TTL_MINUTES, TEXT_LIMITS } from "./limits.ts";
import { isOfLength } from "./text-length.ts";
import type { EnvelopeContent } from "./wire-mapping.ts";

/**
 * What the relay would refuse in an envelope, found before it is signed. What is not checked here, the relay refuses. Source:
 * docs/protocol.md#envelopes.
 */

export const MESSAGE_TYPE = /^message\.[a-z][a-z0-9_]{0,31}$/;
export const TYPE_RULE = "must be message.send, or message. and 1–32 of a–z 0–9 _, a letter first";

/** Of a payload of `session.*`: the fewest and the most characters of each text. */
const SESSION_TEXTS: Readonly<Record<string, readonly [number, number]>> = {
  purpose: [1, TEXT_LIMITS.purpose],
  intro: [0, TEXT_LIMITS.intro],
  scope: [0, TEXT_LIMITS.scope],
  expected_frequency: [0, TEXT_LIMITS.expectedFrequency],
  reason: [0, TEXT_LIMITS.reason],
};

/** @param from who sends it. Throws `invalid_envelope` with the fields that are wrong. */
export function checkEnvelope(content: EnvelopeContent, from: string): void {
  const errors = problemsOf(content, from).flatMap(([field, message]) =>
    message === undefined ? [] : [{ field, message }],
  );
  if (errors.length > 0) throw invalidEnvelope(errors);
}

export function invalidEnvelope(errors: readonly FieldError[]): RelayError {
  return new RelayError("invalid_envelope", {
    message: withFields(RELAY_ERRORS.invalid_envelope.message, errors),
    errors,
  });
}

/** A field, and what is wrong with it, if anything is. */
type Problem = readonly [field: string, message: string | undefined];

function problemsOf({ type, to, task_id, payload }: EnvelopeContent, from: string): Problem[] {
  // Whoever calls from JavaScript may give anything.
  const isText = typeof type === "string";
  const isSession = isText && type.startsWith("session.");
  const toSelf = isSession && to === from ? "must be another agent than the one that sends it" : undefined;
  const ofType = isSession || (isText && MESSAGE_TYPE.test(type)) ? undefined : TYPE_RULE;
  const ofTask = task_id === undefined ? undefined : textProblem(task_id, 1, TEXT_LIMITS.taskId);
  const common: Problem[] = [
    ["to", agentIdProblem(to) ?? toSelf],
    ["type", ofType],
    ["task_id", ofTask],
  ];
  return isSession ? [...common, ...sessionProblems(type, membersOf(payload))] : common;
}

function sessionProblems(type: string, payload: Readonly<Record<string, unknown>>): Problem[] {
  const texts = Object.entries(SESSION_TEXTS).map(([name, [min, max]]): Problem => {
    const text = payload[name];
    const isRequired = name === "purpose" && type === "session.request";
    return [`payload.${name}`, text === undefined && !isRequired ? undefined : textProblem(text, min, max)];
  });
  const { ttl_minutes: ttl } = payload;
  const { min, max } = SESSION_TTL_MINUTES;
  const isTtl = ttl === undefined || (Number.isInteger(ttl) && Number(ttl) >= min && Number(ttl) <= max);
  return [...texts, ["payload.ttl_minutes", isTtl ? undefined : `must be a whole number from ${min} to ${max}`]];
}

function textProblem(text: unknown, min: number, max: number): string | undefined {
  if (typeof text === "string" && isOfLength(text, min, max)) return undefined;
  return `must be a text of ${min} to ${max} characters`;
}
