import { isCredentialKey } from "../credentials/contract.ts";
import { membersOf } from "../frames.ts";
import { SESSION_TTL_MINUTES } from "../limits.ts";
import { parseUniqueJson } from "../parse-json.ts";
import { readEnvelope } from "../read-envelope.ts";
import type { Envelope } from "../types.ts";
import type { Receipt } from "./receipt.ts";

const MEMBERS = ["version", "request", "decision", "credentials"];
const ENVELOPE_MEMBERS = ["id", "type", "from", "to", "task_id", "payload", "ts", "key_id", "sig"];
const ED25519_SIG = /^[A-Za-z0-9_-]{86}$/;
const DECISIONS = ["session.approve", "session.reject"];
/** A byte order mark. The decoder takes one off by itself. */
const MARK = /^\ufeff/;
const UTF_8 = new TextDecoder("utf-8", { fatal: true });
/** Two agents, each with at most two credentials at a time. */
const MAX_CREDENTIALS = 4;

/**
 * The receipt of a JSON text or of its bytes in UTF-8, with a byte order mark or without. Undefined when it is malformed: a member
 * too many, twice, missing, or of another form.
 */
export function readReceipt(given: string | Uint8Array): Receipt | undefined {
  const value = membersOf(tryParse(given));
  const { version, request, decision, credentials } = value;
  if (version !== 1 || !hasOnly(value, MEMBERS) || !isRequest(request) || !isDecision(decision)) return undefined;
  return areTokens(credentials) ? { version, request, decision, credentials } : undefined;
}

/** Milliseconds in which a request could be decided; undefined when it says none that is allowed. */
export function ttlOf({ payload }: Envelope): number | undefined {
  const { ttl_minutes: minutes = SESSION_TTL_MINUTES.default } = payload;
  const { min, max } = SESSION_TTL_MINUTES;
  const isAllowed = Number.isInteger(minutes) && (minutes as number) >= min && (minutes as number) <= max;
  return isAllowed ? (minutes as number) * 60_000 : undefined;
}

function isRequest(value: unknown): value is Envelope {
  return isEnvelope(value) && value.type === "session.request" && ttlOf(value) !== undefined;
}

function isDecision(value: unknown): value is Envelope {
  if (!isEnvelope(value) || !DECISIONS.includes(value.type)) return false;
  return typeof value.payload.session_id === "string" && typeof value.payload.request_sha256 === "string";
}

/** Of agents whose keys have credentials. Source: docs/protocol.md#envelopes. */
function isEnvelope(value: unknown): value is Envelope {
  const members = membersOf(value);
  const envelope = hasOnly(members, ENVELOPE_MEMBERS) ? readEnvelope(members) : undefined;
  return envelope?.to !== undefined && isCredentialKey(envelope.key_id) && ED25519_SIG.test(envelope.sig);
}

function areTokens(value: unknown): value is string[] {
  return Array.isArray(value) && value.length <= MAX_CREDENTIALS && value.every((token) => typeof token === "string");
}

function hasOnly(value: object, names: readonly string[]): boolean {
  return Object.keys(value).every((name) => names.includes(name));
}

function tryParse(given: string | Uint8Array): unknown {
  try {
    return parseUniqueJson(typeof given === "string" ? given.replace(MARK, "") : UTF_8.decode(given));
  } catch {
    return undefined;
  }
}
