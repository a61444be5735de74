import { membersOf } from "./frames.ts";
import type { Envelope, JsonObject } from "./types.ts";

/** The signed members and no other; undefined when one is missing or has another type. */
export function readEnvelope(value: unknown): Envelope | undefined {
  const { id, type, from, to, task_id, payload, ts, key_id, sig } = membersOf(value);
  const optional = [to, task_id].filter((text) => text !== undefined);
  if (![id, type, from, key_id, sig, ...optional].every((text) => typeof text === "string")) return undefined;
  if (typeof ts !== "number" || typeof payload !== "object" || payload === null || Array.isArray(payload))
    return undefined;
  const optionalMembers = { ...(to !== undefined && { to }), ...(task_id !== undefined && { task_id }) };
  return { id, type, from, ...optionalMembers, payload: payload as JsonObject, ts, key_id, sig } as Envelope;
}
