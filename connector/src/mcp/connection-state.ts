import { z } from "zod";
import type { RelayError } from "../errors.ts";
import type { ConnectorState } from "../types.ts";
import type { McpAgent } from "./agent.ts";
import { hintOf } from "./tool-errors.ts";

/** The connection in the results of tools. */
export const ConnectionState = z.strictObject({
  status: z.enum(["idle", "connecting", "online", "reconnecting", "closed"]),
  /** Of the relay. */
  url: z.string(),
  /** Since when it is online, or is not. */
  since_iso: z.string(),
  /** Who else has it, or uses it. */
  shared_with: z.string().optional(),
  /** Where it is not online: `unreachable`, `lost`, or the code of the relay's refusal. */
  reason: z.string().optional(),
  message: z.string().optional(),
  /** What to do about it. */
  hint: z.string().optional(),
  retry_in_ms: z.number().optional(),
});

const OTHER =
  "another process of your agent on this machine, which gets every message, too, and may answer it: ask your user which of you does";

export function connectionStateOf({ connector, endedBy }: McpAgent): z.infer<typeof ConnectionState> {
  const { state, relayUrl: url, since, isShared } = connector;
  const { status } = state;
  const shared = isShared && { shared_with: OTHER };
  const retry = status === "reconnecting" && { retry_in_ms: state.retryInMs };
  return { status, url, since_iso: since.toISOString(), ...shared, ...whyNot(state, endedBy), ...retry };
}

type Why = Pick<z.infer<typeof ConnectionState>, "reason" | "message" | "hint">;

const BY_ITSELF = "It is tried again by itself.";
/** Of a refusal that may pass: of a key that was added to the relay a moment ago, or of a credential that the key file replaces. */
const FOR_A_WHILE = "It is tried again by itself for some seconds; then each call tries again.";
const BY_EACH = "Until then each call tries again.";
const LOOK_AGAIN = "Call my_status again in a few seconds.";

function nextAttempt(state: ConnectorState): string {
  if (state.status !== "reconnecting") return BY_EACH;
  return state.reason === "unreachable" ? BY_ITSELF : FOR_A_WHILE;
}

/** Why the agent is not online, as far as that is known. @param endedBy of the connection before. */
function whyNot(state: ConnectorState, endedBy: RelayError | undefined): Why {
  if (state.status === "online") return {};
  if (state.status === "idle" || state.status === "connecting") {
    if (endedBy === undefined) return { message: "The relay has not answered yet.", hint: LOOK_AGAIN };
    const { code: reason, message } = endedBy;
    return { reason, message, hint: `${hintOf(endedBy)} It is tried again now. ${LOOK_AGAIN}` };
  }
  const { error } = state;
  const isTried = state.status === "reconnecting";
  if (error !== undefined) {
    const { code: reason, message } = error;
    return { reason, message, hint: `${hintOf(error)} ${nextAttempt(state)}` };
  }
  if (!isTried) return {};
  const message =
    state.reason === "lost" ? `The connection was lost (${state.closeCode}).` : "The relay is not reachable.";
  return { reason: state.reason, message, hint: BY_ITSELF };
}
