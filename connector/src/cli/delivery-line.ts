import type { Delivery, Envelope } from "../types.ts";
import type { Output } from "./io.ts";
import { jsonLine, printable, styled } from "./output.ts";

/** A delivery as a line on stdout: JSON, or text for people at a terminal. */
export function deliveryLine(delivery: Delivery, output: Output, json: boolean): string {
  const { sessionId, verified, issuer, sealed, receivedAt, from, type, payload } = delivery;
  const time = new Date(receivedAt);
  if (json || !output.isTTY) {
    const session = sessionId !== undefined && { session_id: sessionId };
    const who = { verified, ...(issuer !== undefined && { issuer }), ...(sealed && { sealed }) };
    const members = { envelope: readableEnvelope(delivery), ...session, ...who };
    return jsonLine({ event: "delivery", ...members, received_at_iso: time.toISOString() });
  }
  const head = `${styled(output, "dim", time.toTimeString().slice(0, 8))} ${styled(output, "bold", printable(from))}`;
  const session = sessionId === undefined ? "" : ` ${printable(sessionId)}`;
  const who = [verified, ...(issuer === undefined ? [] : [`by ${printable(issuer)}`]), ...(sealed ? ["sealed"] : [])];
  return `${head} ${printable(type)}${session} ${jsonLine(payload)} ${styled(output, "dim", `(${who.join(", ")})`)}`;
}

/** The envelope as programs read it: with the payload that was sealed in place of the ciphertext. */
export function readableEnvelope({ envelope, payload, sealed }: Delivery): Envelope {
  return sealed ? { ...envelope, payload } : envelope;
}
