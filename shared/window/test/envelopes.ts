import { hash } from "node:crypto";
import type { Envelope } from "relay-protocol/wire/envelope.ts";
import type { Acceptance, Claim, DeliveryAcceptance, PresenceAcceptance } from "../src/acceptance/acceptance.ts";

export const [ALICE, BOB, CAROL, MALLORY] = ["agent://alice", "agent://bob", "agent://carol", "agent://mallory"] as [
  string,
  string,
  string,
  string,
];

let envelopes = 0;

/** An envelope of its own; its signature was never checked. */
export function envelopeOf(type: string, from: string, changes: Partial<Envelope> = {}): Envelope {
  envelopes += 1;
  const id = `env-${envelopes}`;
  return { id, type, from, payload: {}, ts: Date.now(), key_id: "key-1", sig: "A".repeat(43), ...changes };
}

export function messageOf(from: string, to: string, changes: Partial<Envelope> = {}): Envelope {
  return envelopeOf("message.send", from, { to, payload: { message: "two words" }, ...changes });
}

export function requestOf(from: string, to: string, minutes = 60): Envelope {
  return envelopeOf("session.request", from, { to, payload: { purpose: "talk", ttl_minutes: minutes } });
}

export function decisionOf(
  verb: "approve" | "reject",
  from: string,
  to: string,
  sessionId: string,
  changes: Partial<Envelope> = {},
): Envelope {
  return envelopeOf(`session.${verb}`, from, { to, payload: { session_id: sessionId }, ...changes });
}

export function textOf(envelope: Envelope): string {
  return JSON.stringify(envelope);
}

export function claimOf(key: string, body: string): Claim {
  return { digest: hash("sha256", key, "base64url"), bodyDigest: hash("sha256", body, "base64url") };
}

/** The outcome of a register or heartbeat that was not refused. */
export function presence(acceptance: Acceptance): PresenceAcceptance {
  if ("about" in acceptance && acceptance.about === "presence") return acceptance;
  throw new Error(`not about presence: ${acceptance.outcome}`);
}

/** The outcome of a message or session envelope that was not refused. */
export function delivery(acceptance: Acceptance): DeliveryAcceptance {
  if ("about" in acceptance && acceptance.about === "delivery") return acceptance;
  throw new Error(`not about delivery: ${acceptance.outcome}`);
}
