import { AGENT_ID } from "./agent-id.ts";
import { membersOf } from "./frames.ts";
import { TEXT_LIMITS } from "./limits.ts";
import { isPayload } from "./payload-rules.ts";
import { isOfLength } from "./text-length.ts";
import type { Envelope } from "./types.ts";

/**
 * The forms of what is remembered of an envelope, which bound it. `sig` is not remembered: another one is a forgery.
 * Source: docs/protocol.md#envelopes.
 */
const FORMS = {
  id: /^[A-Za-z0-9][A-Za-z0-9._:-]{0,127}$/,
  type: /^(?:agent|message|session)\.[a-z][a-z0-9_]{0,31}$/,
  from: AGENT_ID,
  key_id: /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/,
} as const;

/**
 * The signed members and no other; undefined when one is missing or has another form, or when the payload breaks the rules of
 * payloads. These bound every recursion over an envelope, of which the canonical text is the first.
 */
export function readEnvelope(value: unknown): Envelope | undefined {
  const members = membersOf(value);
  const { id, type, from, to, task_id, payload, ts, key_id, sig } = members;
  const hasForm = Object.entries(FORMS).every(([name, form]) => isOfForm(members[name], form));
  if (!hasForm || typeof sig !== "string" || (to !== undefined && !isOfForm(to, AGENT_ID)) || !isTaskId(task_id))
    return undefined;
  if (!Number.isSafeInteger(ts) || !isPayload(payload)) return undefined;
  const optionalMembers = { ...(to !== undefined && { to }), ...(task_id !== undefined && { task_id }) };
  return { id, type, from, ...optionalMembers, payload, ts, key_id, sig } as Envelope;
}

function isOfForm(value: unknown, form: RegExp): boolean {
  return typeof value === "string" && form.test(value);
}

function isTaskId(value: unknown): boolean {
  if (value === undefined) return true;
  return typeof value === "string" && value.isWellFormed() && isOfLength(value, 1, TEXT_LIMITS.taskId);
}
