import type { Delivery } from "../types.ts";
import type { Output } from "./io.ts";
import { jsonLine, printable, styled } from "./output.ts";

/** A delivery as a line on stdout: JSON, or text for people at a terminal. */
export function deliveryLine(delivery: Delivery, output: Output, json: boolean): string {
  const { envelope, sessionId, verified, receivedAt, from, type, payload } = delivery;
  const time = new Date(receivedAt);
  if (json || !output.isTTY) {
    const session = sessionId !== undefined && { session_id: sessionId };
    return jsonLine({ event: "delivery", envelope, ...session, verified, received_at_iso: time.toISOString() });
  }
  const head = `${styled(output, "dim", time.toTimeString().slice(0, 8))} ${styled(output, "bold", printable(from))}`;
  const session = sessionId === undefined ? "" : ` ${printable(sessionId)}`;
  return `${head} ${printable(type)}${session} ${jsonLine(payload)} ${styled(output, "dim", `(${verified})`)}`;
}
