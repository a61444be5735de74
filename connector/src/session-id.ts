/** What a relay calls a session. Source: docs/protocol.md#sessions. */
export const SESSION_ID = /^ses_[0-9a-hjkmnp-tv-z]{26}$/;

/** Undefined for what is none: ids of sessions are remembered, and have a bounded length by their form alone. */
export function sessionIdOf(value: unknown): string | undefined {
  return typeof value === "string" && SESSION_ID.test(value) ? value : undefined;
}
