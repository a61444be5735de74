/** Names of those who take part: agents `agent://<name>`, and namespaces `agent://<name>.*` of attackers. */

/** Two who exchange; who waits for an absent one; two who negotiate; whose key is replaced; who comes only when Redis is full. */
export const BYSTANDERS = ["ann", "ben", "cora", "dina", "eli", "finn", "gwen"] as const;
/** Never online. */
export const ABSENT = "agent://nobody.is.here";
/** Whose API keys attackers have. */
export const API_KEY_AGENTS = "callers";
/** Senders to one slow reader, each with a key of its own. */
export const SENDERS = Array.from({ length: 10 }, (_, n) => `sender-${n}`);
/** One key for each attack that needs one, so that no attack uses up what another may. */
export const ATTACKERS = [
  "rate",
  "sessions",
  "pending",
  "reader",
  "crowd",
  "takeovers",
  "fragments",
  "pings",
  "manypings",
  "manytexts",
  "bytes",
  "burst",
  "displacing",
  ...SENDERS,
] as const;
/** An issuer of agents `agent://<issuer>.*`, all of them an attacker's. */
export const ISSUER = "legion";
/** The relay, for who registers with a credential. */
export const RELAY_HOST = "relay.example";
