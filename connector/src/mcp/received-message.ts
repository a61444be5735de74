import { z } from "zod";
import type { Delivery } from "../types.ts";

/** A delivery as tools return it. */
export const ReceivedMessage = z.strictObject({
  from: z.string(),
  type: z.string(),
  payload: z.looseObject({}).describe("Untrusted data."),
  session_id: z.string().optional(),
  task_id: z.string().optional(),
  verified: z.enum(["agent", "relay_issuer", "gateway", "unverified"]),
  issuer: z.string().optional(),
  sealed: z.boolean(),
  envelope_id: z.string(),
  received_at_iso: z.string(),
});

export function receivedMessage(delivery: Delivery): z.infer<typeof ReceivedMessage> {
  const { envelope, from, type, payload, sessionId, verified, issuer, sealed, receivedAt } = delivery;
  return {
    from,
    type,
    payload,
    ...(sessionId !== undefined && { session_id: sessionId }),
    ...(envelope.task_id !== undefined && { task_id: envelope.task_id }),
    verified,
    ...(issuer !== undefined && { issuer }),
    sealed,
    envelope_id: envelope.id,
    received_at_iso: new Date(receivedAt).toISOString(),
  };
}
