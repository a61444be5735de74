import { z } from "zod";
import { CANONICAL_SIGNING_ORDER } from "../envelope.ts";
import { ProblemCode } from "../responses.ts";
import {
  AllowedNextStep,
  Expectation,
  GUIDE_FRAME,
  GuideRequestBody,
  GuideStep,
  GuideWindow,
  HandoffGate,
} from "./guides.ts";
import { ProofGate } from "./window.ts";

/** The guide to a session request, and the packet with all that a program needs to make one. */

/** One check before the request. */
const PreflightCheck = z.strictObject({
  check: z.string(),
  required: z.boolean(),
  request: z
    .strictObject({
      method: z.literal("GET"),
      url: z.string(),
      expect: Expectation,
    })
    .optional()
    .meta({ description: "Present where the relay can answer the check, and a target is named." }),
});

const Troubleshooting = z.strictObject({
  status: z.int(),
  code: ProblemCode.nullable(),
  fix: z.string(),
});

const PostRefreshGate = z.strictObject({
  method: z.literal("GET"),
  endpoint: z.string(),
  add: z
    .array(z.literal("session_id"))
    .meta({ description: "Members of the request's answer that go into its query." }),
  pass_when: z.array(Expectation).meta({
    description: "status is the target's: a go is yours when all of these hold; else do as `next` of the gate says.",
  }),
});

/** The next session request; ready to send where neither agent is missing. */
export const RefreshPacket = z
  .strictObject({
    status: z.enum(["first_proof_due", "refresh_due", "fresh"]),
    action: AllowedNextStep,
    should_refresh_before_handoff: z.boolean(),
    refresh_urgency: ProofGate.shape.refresh_urgency,
    target_agent_id: GUIDE_FRAME.target_agent_id,
    method: z.literal("POST"),
    endpoint: z.string(),
    auth_header: z.literal("x-api-key"),
    content_type: z.literal("application/json"),
    request_body: GuideRequestBody,
    ready_to_run: GUIDE_FRAME.ready_to_run,
    missing: GUIDE_FRAME.missing,
    preflight_checklist: z.array(PreflightCheck),
    pass_when: z.array(Expectation).meta({ description: "What the answer must contain to be a proof." }),
    troubleshooting: z.array(Troubleshooting),
    post_refresh_gate: PostRefreshGate,
  })
  .meta({ id: "RefreshPacket" });
export type RefreshPacket = z.infer<typeof RefreshPacket>;

/** GET /api/public/session-request-refresh-packet. */
export const SessionRequestRefreshPacket = z.strictObject({ ...GUIDE_FRAME, ...RefreshPacket.shape });
export type SessionRequestRefreshPacket = z.infer<typeof SessionRequestRefreshPacket>;

/** GET /api/public/session-request-guide. */
export const SessionRequestGuide = z.strictObject({
  ...GUIDE_FRAME,
  proof_target: z.strictObject({ goal: z.string(), metric: z.string() }),
  current_window: GuideWindow,
  readiness_gate: HandoffGate,
  prerequisites: z.array(z.string()),
  gateway: z.strictObject({
    description: z.string(),
    method: z.literal("POST"),
    endpoint: z.string(),
    auth_header: z.literal("x-api-key"),
    content_type: z.literal("application/json"),
    required_fields: z.array(z.string()),
    optional_fields: z.array(z.string()),
    max_body_bytes: z.int(),
    requests_per_minute: z.int(),
    sender_needs_connector: z.literal(false),
  }),
  websocket_envelope: z.strictObject({
    description: z.string(),
    url: z.string(),
    type: z.literal("session.request"),
    required_fields: z.array(z.string()),
    optional_fields: z.array(z.string()),
    payload_required_fields: z.array(z.string()),
    payload_optional_fields: z.array(z.string()),
    canonical_signing_order: z.array(z.enum(CANONICAL_SIGNING_ORDER)),
    max_clock_skew_ms: z.int(),
    self_test: z.string(),
  }),
  acceptance_monitoring: z.strictObject({
    method: z.literal("GET"),
    endpoint: z.string(),
    metrics: z
      .strictObject({ gateway: z.string(), websocket_envelope: z.string() })
      .meta({ description: "Member of monitors in that report that a request moves, by the way it is sent." }),
    proofs: z.literal("recent_session_proofs"),
    match: z.literal("session_id"),
  }),
  next_steps: z.array(GuideStep),
  compact_refresh_packet: RefreshPacket,
});
export type SessionRequestGuide = z.infer<typeof SessionRequestGuide>;
