import { z } from "zod";
import type { ConnectorState } from "../types.ts";

/** The state of the connection in the results of tools. */
export const ConnectionState = z.strictObject({
  status: z.enum(["idle", "connecting", "online", "reconnecting", "closed"]),
  /** `unreachable`, `lost`, or the code of the final error. */
  reason: z.string().optional(),
  /** What to do about the final error. */
  hint: z.string().optional(),
  retry_in_ms: z.number().optional(),
});

export function connectionStateOf(state: ConnectorState): z.infer<typeof ConnectionState> {
  if (state.status === "reconnecting") {
    return { status: state.status, reason: state.reason, retry_in_ms: state.retryInMs };
  }
  if (state.status !== "closed" || state.error === undefined) return { status: state.status };
  const { code, message, hint } = state.error;
  return { status: state.status, reason: code, hint: `${message} ${hint}` };
}
