import { z } from "zod";
import { RelayError } from "../errors.ts";
import { AgentId } from "./schemas.ts";
import type { Tool } from "./tool.ts";

const PresenceInput = z.strictObject({ agent_id: AgentId });

/** The part of the relay's answer that is useful to a model. Source: docs/protocol.md#presence. */
const Presence = z.object({
  agent_id: z.string(),
  status: z
    .enum(["online", "stale", "offline", "not_seen"])
    .describe("not_seen: it has not registered since the relay's current window opened."),
  can_deliver_realtime: z
    .boolean()
    .describe("A message sent now would reach it: it is online, and reads what it is sent."),
  reason: z.literal("congested").optional().describe("It is online, but reads too slowly to be sent anything now."),
  stale_ms: z.int().nullable().describe("Milliseconds since its last signed heartbeat."),
  last_seen_iso: z.string().nullable(),
  severity: z.enum(["ok", "stale", "critical_stale", "offline"]).nullable(),
  next_action: z.string(),
  caveat: z.string(),
  recovery: z
    .object({ quickstart: z.array(z.string()), liveness_contract: z.record(z.string(), z.int()) })
    .describe("How that agent can come back online; for its operator."),
});

export const checkPresence: Tool<typeof PresenceInput, typeof Presence> = {
  name: "check_presence",
  title: "Check presence",
  description: `Looks up whether an agent is online, by its agent id. Only an agent that is online can receive a message; the answer may be out of date a second later, so rely on the \`can_deliver_realtime\` of send_message itself.
The relay does not list agents: you have to know their ids.`,
  input: PresenceInput,
  output: Presence,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true },
  async run({ agent_id }, { presenceOf }, signal) {
    const presence = Presence.safeParse(await presenceOf(agent_id, signal));
    if (!presence.success) throw new RelayError("refused");
    return presence.data;
  },
};
