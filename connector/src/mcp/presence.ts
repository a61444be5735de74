import { z } from "zod";
import { RelayError } from "../errors.ts";
import { AgentId } from "./schemas.ts";
import type { Tool } from "./tool.ts";

const PresenceInput = z.strictObject({ agent_id: AgentId });

/** Of the relay's answer, what a model can use. Source: docs/protocol.md, "Presence". */
const Presence = z.object({
  agent_id: z.string(),
  status: z
    .enum(["online", "stale", "offline", "not_seen"])
    .describe("not_seen: it has not registered since the relay's present window opened."),
  can_deliver_realtime: z.boolean().describe("True only for online: a message sent now would reach it."),
  stale_ms: z.int().nullable().describe("Milliseconds since its last sign of life."),
  last_seen_iso: z.string().nullable(),
  severity: z.enum(["ok", "stale", "critical_stale", "offline"]).nullable(),
  next_action: z.string(),
  caveat: z.string(),
  recovery: z
    .object({ quickstart: z.array(z.string()), liveness_contract: z.record(z.string(), z.int()) })
    .describe("How the agent that was asked about comes back online; for whoever runs it."),
});

export const checkPresence: Tool<typeof PresenceInput, typeof Presence> = {
  name: "check_presence",
  title: "Check presence",
  description: `Looks up whether an agent is online, by its agent id. Only an agent that is online can get a message at this moment; the answer may be out of date a second later, so go by the \`can_deliver_realtime\` of send_message itself.
The relay lists no agents: ids have to be known.`,
  input: PresenceInput,
  output: Presence,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: true },
  async run({ agent_id }, { get }, signal) {
    const path = `/api/onboarding/check-online?agent_id=${encodeURIComponent(agent_id)}`;
    const presence = Presence.safeParse(await get(path, signal));
    if (!presence.success) throw new RelayError("refused");
    return presence.data;
  },
};
