import type { Delivery, Envelope, JsonObject } from "../types.ts";
import type { Output } from "./io.ts";
import { jsonLine, type Line, styled } from "./output.ts";

/** A delivery as a line on stdout: JSON, or text for people at a terminal. */
export function deliveryLine(delivery: Delivery, output: Output, json: boolean): Line {
  if (json || !output.isTTY) return jsonLine({ event: "delivery", ...deliveryMembers(delivery) });
  const { sessionId, verified, issuer, sealed, receivedAt, from, type, payload } = delivery;
  const time = new Date(receivedAt);
  const head = [styled("dim", time.toTimeString().slice(0, 8)), " ", styled("bold", from)];
  const session = sessionId === undefined ? "" : ` ${sessionId}`;
  const who = [verified, ...(issuer === undefined ? [] : [`by ${issuer}`]), ...(sealed ? ["sealed"] : [])];
  return [...head, ` ${type}${session} ${jsonLine(payload)} `, styled("dim", `(${who.join(", ")})`)];
}

/** A delivery for programs, with the protocol's member names. */
export function deliveryMembers(delivery: Delivery): JsonObject {
  const { sessionId, verified, issuer, sealed, receivedAt } = delivery;
  const session = sessionId !== undefined && { session_id: sessionId };
  const who = { verified, ...(issuer !== undefined && { issuer }), sealed };
  const received_at_iso = new Date(receivedAt).toISOString();
  return { envelope: readableEnvelope(delivery), ...session, ...who, received_at_iso };
}

/** The envelope as programs read it: with the payload that was sealed in place of the ciphertext. */
export function readableEnvelope({ envelope, payload, sealed }: Delivery): Envelope {
  return sealed ? { ...envelope, payload } : envelope;
}
