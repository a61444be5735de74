import { AGENT_ID, isAgentPattern } from "../agent-id.ts";
import { ANY_AGENT, ISSUER, type IssuerRecord } from "./contract.ts";
import { isPublicKey } from "./public-jwk.ts";

export type { IssuerRecord };

type Members = Readonly<Record<string, unknown>>;

const TIME = /^(\d{4}-\d\d-\d\d)T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

/** True for a record that can be used. A member that it does not know makes it invalid: it may be a misspelt `revoked`. */
export function isIssuerRecord(value: unknown): value is IssuerRecord {
  if (!hasOnly(value, ["issuer", "keys", "agents", "revoked"])) return false;
  const { issuer, keys, agents, revoked = [] } = value;
  if (typeof issuer !== "string" || !ISSUER.test(issuer)) return false;
  return isFilled(keys, isKey) && isFilled(agents, isPattern) && Array.isArray(revoked) && revoked.every(isRevocation);
}

function isKey(value: unknown): boolean {
  if (!hasOnly(value, ["public_key", "not_before", "expires_at"])) return false;
  const { public_key, not_before, expires_at } = value;
  if (typeof public_key !== "string" || !isPublicKey(public_key, "Ed25519")) return false;
  return [not_before, expires_at].every((time) => time === undefined || isTime(time));
}

function isRevocation(value: unknown): boolean {
  if (!hasOnly(value, ["agent", "issued_before"])) return false;
  const { agent, issued_before } = value;
  return typeof agent === "string" && (agent === ANY_AGENT || AGENT_ID.test(agent)) && isTime(issued_before);
}

function isPattern(value: unknown): boolean {
  return value === ANY_AGENT || isAgentPattern(value);
}

/** As the relay reads its keys file: a revocation that only one of them understands would hold for one only. */
function isTime(value: unknown): boolean {
  const [, day = ""] = typeof value === "string" ? (TIME.exec(value) ?? []) : [];
  const midnight = new Date(`${day}T00:00:00Z`);
  // Date takes 30 February for 2 March.
  return Number.isFinite(midnight.getTime()) && midnight.toISOString().startsWith(day);
}

function isFilled(value: unknown, isItem: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.length > 0 && value.every(isItem);
}

function hasOnly(value: unknown, names: readonly string[]): value is Members {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.keys(value).every((name) => names.includes(name));
}
