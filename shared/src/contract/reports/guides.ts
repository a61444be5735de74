import { z } from "zod";
import { AgentId } from "../agent-id.ts";
import { Privacy, ProofBoundaries, ScopeFlags } from "./common.ts";
import { CurrentWindow, ProofGate } from "./window.ts";

/** Parts that the guides share. Source: the contract, "Guides and handoff" and "Session proof freshness". */

/**
 * What stands where a caller must fill in an agent. Upper case makes them no agent ids, so that neither can be a live
 * agent, and a body sent with one unfilled is refused.
 */
export const TARGET_PLACEHOLDER = "agent://TARGET_AGENT";
export const SENDER_PLACEHOLDER = "agent://YOUR_AGENT";

/** Query of every guide. */
export const GuideQuery = z.strictObject({
  target_agent_id: AgentId.optional().meta({ description: "The agent that the guide is to be written for." }),
});

const TargetAgentId = z
  .union([AgentId, z.literal(TARGET_PLACEHOLDER)])
  .meta({ description: `As asked for; ${TARGET_PLACEHOLDER} when the query names none.` });

/** Where everything is that a guide speaks of; links to guides carry the target on. */
export const GuideLinks = z.strictObject({
  activation_plan: z.string(),
  session_request_guide: z.string(),
  session_request_refresh_packet: z.string(),
  ecosystem_handoff: z.string(),
  marketplace_first_job_handoff: z.string(),
  marketplace_handoff_status: z.string(),
  check_online: z.string(),
  online_agents: z.string(),
  session_request: z.string(),
  session: z.string().meta({ description: "With {session_id} to be filled in." }),
  session_proof_retention: z.string(),
  traffic_daily: z.string(),
  self_test: z.string(),
  signing_manifest: z.string(),
  feedback: z.string(),
  websocket: z.string(),
});
export type GuideLinks = z.infer<typeof GuideLinks>;

/** What every guide begins and ends with. */
export const GUIDE_FRAME = {
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  window_started_at: z.int(),
  generated_at: z.int(),
  target_agent_id: TargetAgentId,
  links: GuideLinks,
  proof_boundaries: ProofBoundaries,
  ...ScopeFlags.shape,
  privacy: Privacy,
};

export const GATE_GO = "go_fresh_relay_negotiation_proof_available";
export const GATE_NO_GO = "no_go_refresh_relay_proof_before_marketplace_handoff";

/** The one step that the state of the window allows. */
export const ALLOWED_NEXT_STEPS = [
  "connect_target_connector",
  "bring_target_connector_online",
  "request_session_with_online_target",
  "refresh_session_request_proof",
  "open_marketplace_first_job_handoff",
] as const;

/** Whether a handoff may rest on the relay's proof. It speaks of the whole window, not of one target. */
export const HandoffGate = z.strictObject({
  status: z.enum([GATE_GO, GATE_NO_GO]),
  allowed_next_step: z.enum(ALLOWED_NEXT_STEPS),
  accepted_online_target: z
    .boolean()
    .meta({ description: "A session request to an online target was accepted in this window." }),
  ...ProofGate.shape,
});
export type HandoffGate = z.infer<typeof HandoffGate>;

/** The window, and the agents in it. */
export const GuideWindow = z.strictObject({
  ...CurrentWindow.shape,
  online_agents: z.int(),
  stale_agents: z.int(),
  offline_agents: z.int(),
  websocket_accepted: z.int(),
});
export type GuideWindow = z.infer<typeof GuideWindow>;

/** A thing that must hold before a handoff, and the figure that says whether it does. */
export const MinimumProof = z.strictObject({
  proof: z.enum([
    "connector_online",
    "signed_envelope_accepted",
    "session_request_accepted_to_online_target",
    "proof_fresh",
  ]),
  met: z.boolean(),
  metric: z.string(),
  value: z.int().nullable(),
});
export type MinimumProof = z.infer<typeof MinimumProof>;

/** What a field of an answer must be; dots lead into objects. */
export const Expectation = z.strictObject({ field: z.string(), equals: z.union([z.boolean(), z.string()]) });

/** A step and, where it is one HTTP call, how to make it. */
export const GuideStep = z.strictObject({
  step: z.string(),
  action: z.string(),
  method: z.enum(["GET", "POST"]).optional(),
  url: z.string().optional(),
});
export type GuideStep = z.infer<typeof GuideStep>;
