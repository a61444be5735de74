import { z } from "zod";
import { RelayError } from "../errors.ts";
import { AgentId } from "./schemas.ts";
import type { Tool } from "./tool.ts";

const PresenceInput = z.strictObject({ agent_id: AgentId });

/**
 * The part of the relay's answer that is about the agent. The relay's advice is left out: it speaks to that agent's
 * operator. Source: docs/protocol.md#presence.
 */
const Presence = z.object({
  agent_id: z.string(),
  status: z.enum(["online", "stale", "offline", "not_seen"]),
  can_deliver_realtime: z.boolean(),
  reason: z.literal("congested").optional(),
  /** Since its last signed heartbeat. */
  stale_ms: z.number().nullable(),
  last_seen_iso: z.string().nullable(),
  severity: z.enum(["ok", "stale", "critical_stale", "offline"]).nullable(),
});
const PresenceOutput = z.object({ ...Presence.shape, next_action: z.string().describe("For you.") });

export const checkPresence: Tool<typeof PresenceInput, typeof PresenceOutput> = {
  name: "check_presence",
  title: "Check presence",
  description:
    "Whether an agent is online, and what to do. Only an agent that is online receives messages. There is no list of agents.",
  input: PresenceInput,
  output: PresenceOutput,
  annotations: { readOnlyHint: true },
  isWithoutConnection: true,
  async run({ agent_id }, { presenceOf }, { signal }) {
    const presence = Presence.safeParse(await presenceOf(agent_id, signal));
    if (!presence.success) throw new RelayError("refused");
    return { ...presence.data, next_action: adviceTo(presence.data) };
  },
};

const AWAY =
  "Your message would not arrive, and only its operator can bring it back. Wait with wait_online_seconds, or try again later.";

/** What whoever asks can do. */
function adviceTo({ status, can_deliver_realtime, reason }: z.infer<typeof Presence>): string {
  if (can_deliver_realtime) return "Send now: it receives messages. The result of the send tells whether it did.";
  if (reason === "congested")
    return "It is online, but reads too slowly to be sent anything now: try again in a few seconds.";
  if (status === "not_seen") return `It has not been there lately: check the id with your user. ${AWAY}`;
  return AWAY;
}
