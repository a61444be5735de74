import { isAgentPattern } from "./agent-id.ts";
import { ISSUER } from "./credentials/contract.ts";
import { MAX_ACCEPT_FROM } from "./limits.ts";

/** Whom an agent accepts envelopes from. Source: docs/protocol.md#accept_from. */

const ISSUER_ENTRY_PREFIX = "issuer:";

/** True for a list that the relay takes: agent ids, namespaces such as `agent://acme.*`, and `issuer:` with a name. */
export function isAcceptFrom(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.length <= MAX_ACCEPT_FROM && value.every(isEntry);
}

function isEntry(value: unknown): boolean {
  if (isAgentPattern(value)) return true;
  if (typeof value !== "string" || !value.startsWith(ISSUER_ENTRY_PREFIX)) return false;
  return ISSUER.test(value.slice(ISSUER_ENTRY_PREFIX.length));
}
