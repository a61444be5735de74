import { z } from "zod";
import { CANONICAL_SIGNING_ORDER } from "../../wire/envelope.ts";
import { REPORT_LIMITS } from "../../wire/limits.ts";
import { AgentId, EXAMPLE_TARGET, SessionId } from "../envelope.ts";

import { PRESENCE_STATUSES, PresenceRecovery, UndeliverableReason } from "../presence.ts";
import { ProblemCode } from "../responses.ts";
import { TARGET_DECISIONS } from "../session.ts";
import {
  Bottleneck,
  CurrentWindow,
  EconomicOperability,
  GateReason,
  PostLink,
  Privacy,
  ProofBoundaries,
  ProofGate,
  ScopeFlags,
  SessionCounts,
} from "./common.ts";
import { ACTIVATION_STATUSES } from "./traffic.ts";

/** Parts of several guides. Source: docs/reports.md#guides, docs/reports.md#freshness. */

/**
 * Placeholders for agents. Upper case makes them invalid agent ids. So no live agent has them, and the relay refuses a
 * body that still contains one.
 */
export const TARGET_PLACEHOLDER = "agent://TARGET_AGENT";
export const SENDER_PLACEHOLDER = "agent://YOUR_AGENT";

/** Query of every guide. */
export const GuideQuery = z
  .strictObject({
    from: AgentId.optional().meta({ description: "You: the agent that requests the session." }),
    target_agent_id: AgentId.optional().meta({
      description: "The agent that the guide is for; without it, the window.",
      examples: [EXAMPLE_TARGET],
    }),
    session_id: SessionId.optional().meta({
      description: "Your session with the target: the answer to your request has it.",
    }),
  })
  .refine(({ from, target_agent_id }) => from === undefined || from !== target_agent_id, {
    path: ["target_agent_id"],
    error: "must be another agent than from: a session is between two agents",
  });
export type GuideQuery = z.infer<typeof GuideQuery>;

const TargetAgentId = z
  .union([AgentId, z.literal(TARGET_PLACEHOLDER)])
  .meta({ id: "GuideTarget", description: `The target_agent_id of the query; ${TARGET_PLACEHOLDER} without one.` });

/** Further links. `discovery` has all other paths. `templates` names the links that are URI templates (RFC 6570). */
export const GuideLinks = z
  .strictObject({
    check_online: z.string().meta({ description: "A template without a target." }),
    session: z.string().meta({ description: "A template without a session that is known." }),
    session_proof_retention: z.string(),
    signing_manifest: z.string(),
    discovery: z.string(),
  })
  .meta({ id: "GuideLinks" });
export type GuideLinks = z.infer<typeof GuideLinks>;

/** Next step that the state of the window, or of the target, allows. */
export const AllowedNextStep = z
  .enum([
    "connect_target_connector",
    "bring_target_connector_online",
    "request_session_with_online_target",
    "refresh_session_request_proof",
    "open_marketplace_first_job_handoff",
    "wait_for_target_decision",
    "ask_another_target",
  ])
  .meta({
    id: "AllowedNextStep",
    description:
      "Without a target, of the whole window. connect_…: no agent was seen; bring_…: none is online; request_…: there is no proof; refresh_…: it is stale; open_…: it is fresh. With session_id, too: wait_…: the target has your request, whose proof is fresh; ask_…: the session was rejected, or its time ran out.",
  });
export type AllowedNextStep = z.infer<typeof AllowedNextStep>;

/** Query parameters that may be missing. */
export const MISSING_PARAMETERS = ["from", "target_agent_id", "session_id"] as const;

/** States of the query's session. */
const SESSION_DECISIONS = [...TARGET_DECISIONS, "unknown"] as const;
export type SessionDecision = (typeof SESSION_DECISIONS)[number];

/** Body of a session request. It is ready to send if nothing is missing. */
const GuideRequestBody = z.strictObject({
  from: z.string(),
  to: z.string(),
  purpose: z.string(),
  ttl_minutes: z.int(),
});

/** The one thing to do now, and who does it. Source: docs/protocol.md#guides. */
export const GuideNext = z
  .strictObject({
    step: z.enum([
      "name_what_is_missing",
      ...AllowedNextStep.options,
      "read_newest_session",
      "read_handoff_gate",
      "agree_on_first_job_in_marketplace",
    ]),
    who: z
      .enum(["you", "target", "person"])
      .meta({ description: "you: who asks. target: its owner. person: whoever the asker acts for decides what now." }),
    action: z.string(),
    request: z
      .strictObject({
        method: z.enum(["GET", "POST"]),
        url: z.string().meta({ description: "A template (RFC 6570) where `templates` names `next`." }),
        auth_header: z.literal("x-api-key").optional(),
        content_type: z.literal("application/json").optional(),
        body: GuideRequestBody.optional(),
      })
      .nullable()
      .meta({ description: "Null where the way ends until `who` has acted." }),
    websocket_envelope: z
      .strictObject({
        url: z.string(),
        type: z.literal("session.request"),
        to: z.string(),
        payload: GuideRequestBody.omit({ from: true, to: true }),
      })
      .optional()
      .meta({
        description: "Beside a POST: the same for a registered agent that signs it itself, without an API key.",
      }),
    after: z
      .strictObject({
        url: z.string(),
        add: z
          .array(z.literal("session_id"))
          .meta({ description: "Members of the answer: put each into the query of `url`, under its name." }),
      })
      .optional()
      .meta({ description: "Beside a POST: GET this URL once the POST, or the websocket envelope, was accepted." }),
    watch: z.string().optional().meta({
      description: "Where `request` is null: a URL that shows whether `who` has acted. Then read this document again.",
    }),
    on_401: z
      .strictObject({ who: z.literal("operator"), action: z.string() })
      .optional()
      .meta({ description: "Beside a POST: what to do when the API key is refused." }),
  })
  .meta({ id: "GuideNext" });
export type GuideNext = z.infer<typeof GuideNext>;

/** Fields of every guide. */
export const GUIDE_FRAME = {
  ok: z.literal(true),
  service: z.literal("agent-relay"),
  window_started_at: z.int(),
  generated_at: z.int(),
  max_behind_ms: z.literal(REPORT_LIMITS.maxBehindMs).meta({
    id: "MaxBehindMs",
    description: "What was acknowledged shows here so many ms later at the latest; in the session itself at once.",
  }),
  target_agent_id: TargetAgentId,
  ready_to_run: z.boolean().meta({
    id: "ReadyToRun",
    description:
      "Everything that this document prints runs as it stands, the target is online, and `next` has a request for you to send. In a refresh packet: of its own request, which a fresh proof makes needless.",
  }),
  missing: z
    .array(z.enum(MISSING_PARAMETERS))
    .meta({ id: "MissingParameters", description: "Query parameters without which it is not ready to run." }),
  next: GuideNext,
  next_action: z.string().meta({ description: "The action of `next`." }),
  target_decision: z.enum(SESSION_DECISIONS).nullable().meta({
    id: "TargetDecision",
    description:
      "What the target said to the session of the query. expired: its time ran out, or newer ones took its place; no notice tells of it. unknown: the target has no such session of `from`'s. Null without target or session.",
  }),
  links: GuideLinks,
  templates: z.array(z.enum(["check_online", "session", "next"])).meta({
    id: "TemplateNames",
    description: "Which of the links, and whether the URL of `next`, are templates (RFC 6570).",
  }),
  feedback: PostLink,
  proof_boundaries: ProofBoundaries,
  ...ScopeFlags.shape,
  privacy: Privacy,
};

export type GuideFrame = z.infer<z.ZodObject<typeof GUIDE_FRAME>>;

export const GATE_GO = "go_fresh_relay_negotiation_proof_available";
export const GATE_NO_GO = "no_go_refresh_relay_proof_before_marketplace_handoff";

/**
 * Whether the relay's proof permits a handoff. It is the proof of the query's session or target, else any proof in the
 * window.
 */
export const HandoffGate = z
  .strictObject({
    status: z.enum([GATE_GO, GATE_NO_GO]).meta({
      description: "go: a request's proof is fresh, whatever was decided.",
    }),
    allowed_next_step: AllowedNextStep,
    reason: GateReason,
    scope: z
      .enum(["process_window", "target"])
      .meta({ description: "Whose proof this is of: target with target_agent_id." }),
    accepted_online_target: z
      .boolean()
      .meta({ description: "A session request was accepted while the target, or any target, was online." }),
    ...ProofGate.shape,
    target_presence: z
      .strictObject({
        status: z.enum(PRESENCE_STATUSES),
        can_deliver_realtime: z.boolean(),
        reason: UndeliverableReason.optional(),
        last_seen_iso: z.iso.datetime().nullable(),
      })
      .nullable()
      .meta({ description: "Null without a target." }),
    last_request_accepted_at_iso: z.iso
      .datetime()
      .nullable()
      .meta({ description: "The target's last accepted request that is kept, whatever its presence then." }),
    proof_requester_is_you: z.boolean().nullable().meta({
      description:
        "Whether from sent the request that the proof is of. Null without from or a proof, and where the operator hides who asked whom.",
    }),
    target_decision: GUIDE_FRAME.target_decision,
  })
  .meta({ id: "HandoffGate" });
export type HandoffGate = z.infer<typeof HandoffGate>;

/** The window and its agents. With a target the counts are absent, because they are not the target's. */
export const GuideWindow = z
  .strictObject({
    ...CurrentWindow.shape,
    ...SessionCounts.partial().shape,
    online_agents: z.int().optional(),
    stale_agents: z.int().optional(),
    offline_agents: z.int().optional(),
    websocket_accepted: z.int().optional(),
  })
  .meta({ id: "GuideWindow" });
export type GuideWindow = z.infer<typeof GuideWindow>;

/** A condition for a handoff, and the value that shows whether it is met. */
export const MinimumProof = z
  .strictObject({
    proof: z.enum([
      "connector_online",
      "signed_envelope_accepted",
      "session_request_accepted_to_online_target",
      "proof_fresh",
    ]),
    met: z.boolean(),
    metric: z.string().meta({ description: "The figure that decides: of the window, or of the target." }),
    value: z.int().nullable(),
  })
  .meta({ id: "MinimumProof" });
export type MinimumProof = z.infer<typeof MinimumProof>;

/** Required value of a field in an answer. Dots lead into objects. */
const Expectation = z
  .strictObject({ field: z.string(), equals: z.union([z.boolean(), z.string()]) })
  .meta({ id: "Expectation" });

/** A step. It has a method and a URL if it is one HTTP request. */
export const GuideStep = z
  .strictObject({
    step: z.string(),
    action: z.string(),
    method: z.enum(["GET", "POST"]).optional(),
    url: z.string().optional(),
  })
  .meta({ id: "GuideStep" });
export type GuideStep = z.infer<typeof GuideStep>;

/** GET /api/public/activation-plan. */
export const ActivationPlan = z.strictObject({
  ...GUIDE_FRAME,
  readiness: z.strictObject({
    status: z.enum(ACTIVATION_STATUSES),
    current_bottleneck: Bottleneck.nullable().meta({
      description:
        "Of the way to a fresh proof. Null, of a target: its proof is fresh, wherever it is by now (gate.target_presence).",
    }),
    gate: HandoffGate,
    current_window: GuideWindow,
  }),
  connector_recovery: z.strictObject({
    needed: z.boolean().meta({
      description: "allowed_next_step waits for a connector. With a fresh proof it does not, wherever the target is.",
    }),
    hints: z.array(z.string()),
    ...PresenceRecovery.shape,
  }),
  minimum_viable_proof: z.array(MinimumProof),
  copy_paste_steps: z.array(
    z.strictObject({
      step: z.string(),
      command: z
        .string()
        .nullable()
        .meta({ description: "Null while what it needs is missing: parameters, or the target." }),
    }),
  ),
  economic_operability: EconomicOperability,
});
export type ActivationPlan = z.infer<typeof ActivationPlan>;

/** Handoff from the relay's proof to the marketplace, an external system. */

const Marketplace = z
  .strictObject({
    external: z.literal(true),
    note: z.string(),
    first_job_handoff: z.string(),
    handoff_status: z.string(),
  })
  .meta({ id: "Marketplace" });

/** GET /api/public/ecosystem-handoff. */
export const EcosystemHandoff = z.strictObject({
  ...GUIDE_FRAME,
  relay_prerequisites: z.array(MinimumProof),
  proof_gate: HandoffGate,
  current_window: GuideWindow,
  marketplace: Marketplace,
});
export type EcosystemHandoff = z.infer<typeof EcosystemHandoff>;

/** GET /api/public/marketplace-first-job-handoff. */
export const MarketplaceFirstJobHandoff = z.strictObject({
  ...GUIDE_FRAME,
  proof_gate: HandoffGate,
  steps: z.array(
    z.strictObject({
      ...GuideStep.shape,
      where: z.enum(["relay", "marketplace"]),
      done: z.boolean().nullable().meta({ description: "Null where the relay does not know." }),
    }),
  ),
  marketplace: Marketplace,
  economic_operability: EconomicOperability,
});
export type MarketplaceFirstJobHandoff = z.infer<typeof MarketplaceFirstJobHandoff>;

/** GET /api/public/marketplace-handoff-status. */
export const MarketplaceHandoffStatus = z.strictObject({
  ...GUIDE_FRAME,
  ...HandoffGate.shape,
  next_step_url: z.string(),
  caveat: z.string(),
});
export type MarketplaceHandoffStatus = z.infer<typeof MarketplaceHandoffStatus>;

/** Guide to a session request, and the packet that a program needs to make one. */

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

/** The next session request. It is ready to send if both agents are known. */
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
