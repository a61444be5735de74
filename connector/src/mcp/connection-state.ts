import { z } from "zod";
import type { RelayError } from "../errors.ts";
import type { ConnectorState } from "../types.ts";
import { hintOf } from "./tool-errors.ts";

/** The state of the connection in the results of tools. */
export const ConnectionState = z.strictObject({
  status: z.enum(["idle", "connecting", "online", "reconnecting", "closed"]),
  /** `unreachable`, `lost`, or the code of the relay's refusal. */
  reason: z.string().optional(),
  /** What to do about the refusal. */
  hint: z.string().optional(),
  retry_in_ms: z.number().optional(),
});

export function connectionStateOf(state: ConnectorState): z.infer<typeof ConnectionState> {
  const { status } = state;
  if (status === "reconnecting") return { status, ...whyOf(state.error, state.reason), retry_in_ms: state.retryInMs };
  return { status, ...(status === "closed" && whyOf(state.error)) };
}

function whyOf(error: RelayError | undefined, reason?: string): { reason?: string; hint?: string } {
  if (error !== undefined) return { reason: error.code, hint: `${error.message} ${hintOf(error)}` };
  return reason === undefined ? {} : { reason };
}
