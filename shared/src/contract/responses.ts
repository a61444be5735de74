import { z } from "zod";
import { CANONICAL_SIGNING_ORDER, EnvelopeId, SessionId, SignedEnvelope } from "./envelope.ts";
import { ERRORS, type ErrorCode } from "./errors.ts";
import { AnnouncedLimits } from "./frames.ts";
import { TargetDelivery } from "./presence.ts";
import { Privacy, ReputationPolicy } from "./reports/common.ts";
import { PENDING } from "./session.ts";

/** Bodies of the HTTP answers. Source: the contract, "Resources"; the protocol, sections 4, 9 and 10. */

/** RFC 9457 problem document; `type` is `urn:agent-relay:problem:<code>`. */
export const Problem = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    ok: z.literal(false),
    code: z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]),
    hint: z.string(),
    errors: z.array(z.strictObject({ field: z.string(), message: z.string() })).optional(),
    retry_after_ms: z.int().optional(),
    retry_after_seconds: z.int().optional(),
    server_time: z.int().optional(),
  })
  .meta({ id: "Problem" });
export type Problem = z.infer<typeof Problem>;

/** 202 of POST /v1/messages/send. */
export const AcceptedEnvelope = z
  .strictObject({
    ok: z.literal(true),
    accepted: z.literal(true),
    id: EnvelopeId,
    envelope_id: EnvelopeId,
    type: z.string(),
    target_delivery: TargetDelivery,
  })
  .meta({ id: "AcceptedEnvelope" });
export type AcceptedEnvelope = z.infer<typeof AcceptedEnvelope>;

/** 202 of POST /v1/sessions/request. */
export const AcceptedSession = z
  .strictObject({
    ok: z.literal(true),
    accepted: z.literal(true),
    session_id: SessionId,
    envelope_id: EnvelopeId,
    target_delivery: TargetDelivery,
    next: z.strictObject({
      monitor: z.strictObject({ metric: z.literal("traffic.simple_session_request.accepted"), url: z.string() }),
      ecosystem_handoff: z.string(),
      marketplace_first_job_handoff: z.string(),
      first_job_handoff_priority: z.strictObject({
        priority: z.enum(["after_target_approves", "after_target_comes_online"]),
        handoff: z.string(),
        requires_fresh_online_target_proof: z.literal(true),
        reason: z.string(),
      }),
      async_negotiation_fallback: z.strictObject({
        mode: z.literal(PENDING),
        session_status: z.string(),
        expires_at_iso: z.iso.datetime(),
        note: z.string(),
      }),
      verified_deal_reputation_policy: ReputationPolicy,
    }),
  })
  .meta({ id: "AcceptedSession" });
export type AcceptedSession = z.infer<typeof AcceptedSession>;

/** 202 of the feedback endpoints. */
export const FeedbackAck = z
  .strictObject({
    ok: z.literal(true),
    stored: z.literal("aggregate_only"),
    raw_message_stored: z.literal(false),
  })
  .meta({ id: "FeedbackAck" });

const GatewayKey = z.strictObject({ key_id: z.string(), alg: z.literal("ed25519"), public_key: z.string() });

/** One published key, one envelope and what signing makes of them. The keys are published on purpose. */
export const TestVector = z.strictObject({
  alg: z.enum(["hmac-sha256", "ed25519"]),
  key: z.strictObject({
    secret: z.string().optional(),
    private_key: z.string().optional(),
    public_key: z.string().optional(),
  }),
  envelope: z.looseObject({}),
  canonical: z.string(),
  sig: z.string(),
});
export type TestVector = z.infer<typeof TestVector>;

/** GET /.well-known/signing-manifest.json. Source: protocol, section 4. */
export const SigningManifest = z
  .strictObject({
    ok: z.literal(true),
    service: z.literal("agent-relay"),
    canonical_signing_order: z.array(z.enum(CANONICAL_SIGNING_ORDER)).length(CANONICAL_SIGNING_ORDER.length),
    canonicalization: z.string(),
    algorithms: z.array(z.strictObject({ alg: z.enum(["hmac-sha256", "ed25519"]), sig_characters: z.int() })),
    encoding: z.string(),
    max_clock_skew_ms: z.int(),
    gateway_keys: z.array(GatewayKey),
    websocket: z.strictObject({ urls: z.array(z.string()), limits: AnnouncedLimits }),
    test_vectors: z.array(TestVector),
    self_test: z.strictObject({ method: z.literal("POST"), url: z.string() }),
  })
  .meta({ id: "SigningManifest" });

/** GET /api/self-test. */
export const SelfTestGuide = z
  .strictObject({
    ok: z.literal(true),
    stage: z.literal("guide"),
    canonical_signing_order: z.array(z.string()),
    request_template: z.looseObject({}),
    steps: z.array(z.string()),
    privacy: Privacy,
    next_proof_step: z.string(),
  })
  .meta({ id: "SelfTestGuide" });

/** 200 of POST /api/self-test. */
export const SelfTestPass = z
  .strictObject({
    ok: z.literal(true),
    stage: z.literal("pass"),
    type: z.string(),
    server_time: z.int(),
    next_step: z.string(),
  })
  .meta({ id: "SelfTestPass" });

/** GET /health: the process answers; nothing is asked of Redis. */
export const Health = z
  .strictObject({ ok: z.literal(true), service: z.string(), status: z.literal("healthy") })
  .meta({ id: "Health" });

/** GET /ready: 200 when the service can do its work, 503 otherwise. */
export const Ready = z
  .strictObject({
    ok: z.boolean(),
    service: z.string(),
    ready: z.boolean(),
    online_agents: z.int().nullable(),
    stale_agents: z.int().nullable(),
    connections: z.int().optional(),
    next_action: z.string(),
  })
  .meta({ id: "Ready" });

export { SignedEnvelope };
