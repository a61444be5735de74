/**
 * An agent id `agent://<name>`. Lower-case ASCII only, so no two ids look alike. No id can contain a Redis pattern, a
 * hash tag or a channel separator. Source: docs/protocol.md#agents.
 */
export const AGENT_ID_PATTERN = /^agent:\/\/[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?$/;

const AGENT_SCHEME = "agent://";

/** An agent id, or the namespace of a team: a prefix that ends with `.*`. */
export const AGENT_PATTERN_PATTERN =
  /^agent:\/\/(?:[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?|[a-z0-9][a-z0-9._-]{0,60}\.\*)$/;

export function agentNamed(name: string): string {
  return AGENT_SCHEME + name;
}

export function nameOf(agent: string): string {
  return agent.slice(AGENT_SCHEME.length);
}

/** The digits of Crockford base32 in lower case, from 0 to 31. No two look alike. */
export const CROCKFORD_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz";

/** Crockford base32, for ids. @param bytes a multiple of 5 bytes. Every 5 bytes give 8 digits. */
export function crockford(bytes: Uint8Array): string {
  let text = "";
  let bits = 0;
  let value = 0;
  for (const byte of bytes) {
    value = ((value << 8) | byte) & 0xfff;
    bits += 8;
    while (bits >= 5) {
      bits -= 5;
      text += CROCKFORD_DIGITS[(value >> bits) & 31];
    }
  }
  return text;
}
