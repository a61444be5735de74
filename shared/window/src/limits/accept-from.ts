import { ISSUER_ENTRY_PREFIX, type JsonObject } from "relay-protocol/wire/envelope.ts";
import { holderDigestOf } from "./holder-digest.ts";
import type { Principal } from "./principal.ts";

const ISSUER_MARK = "@";
const EVERYONE = "";

/** The argument of a script where a connection does not know whom its agent accepts envelopes from. */
export const NOT_KNOWN = "-";

/**
 * Whom an agent accepts envelopes from, of its register: words with a space before and after each, which are agent ids,
 * namespaces, and `@` with an issuer's digest; EVERYONE where it names none.
 */
export function acceptFromOf({ accept_from: entries }: JsonObject): string {
  if (!Array.isArray(entries)) return EVERYONE;
  return ` ${entries.map(wordOf).join(" ")} `;
}

/** An entry of an issuer is spelled as its principal is. */
function wordOf(entry: string): string {
  const isIssuer = entry.startsWith(ISSUER_ENTRY_PREFIX);
  return isIssuer ? ISSUER_MARK + holderDigestOf(entry as Principal) : entry;
}
