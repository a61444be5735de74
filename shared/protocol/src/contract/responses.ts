import { z } from "zod";
import { CANONICAL_SIGNING_ORDER } from "../wire/envelope.ts";
import { ERRORS, type ErrorCode, RETRIES } from "../wire/errors.ts";
import { AgentId, EnvelopeId, SessionId } from "./envelope.ts";

import { AnnouncedLimits, CanonicalSha256, FieldErrors } from "./frames.ts";
import { IssuerRecord } from "./keys-file.ts";
import { NotKept, TargetDelivery } from "./presence.ts";
import { PostLink, Privacy, ReputationPolicy } from "./reports/common.ts";
import { PENDING } from "./session.ts";

/** Bodies of the HTTP answers. Source: docs/protocol.md#http. */

/** Signed text of an envelope, as the relay computed it from the sent envelope. */
const Canonical = z.string().meta({ description: "The canonical text; only when it was asked for with ?explain=1." });

export const ProblemCode = z.enum(Object.keys(ERRORS) as [ErrorCode, ...ErrorCode[]]).meta({ id: "ProblemCode" });

/** RFC 9457 problem document. `type` is `urn:agent-relay:problem:<code>`. */
export const Problem = z
  .strictObject({
    type: z.string(),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    ok: z.literal(false),
    code: ProblemCode,
    hint: z.string(),
    retry: z.enum(RETRIES).meta({
      description: "never: the same request cannot succeed. fix: change it first. later: send it again after a wait.",
    }),
    errors: FieldErrors.optional(),
    retry_after_ms: z.int().optional(),
    retry_after_seconds: z.int().optional(),
    server_time: z.int().optional(),
    canonical_sha256: CanonicalSha256.optional(),
    canonical: Canonical.optional(),
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
    next: NotKept.optional().meta({ description: "Only when the target was not online." }),
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
      session: z.string().meta({ description: "Where this session's status can be read." }),
      // Only if the target was not online.
      ...NotKept.partial().shape,
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
    note: z.string().meta({ description: "What feedback can and cannot do, and how to reach a person." }),
  })
  .meta({ id: "FeedbackAck" });

/** Contact of the relay's operator: an https: or mailto: address, or null if none is set. */
export const Contact = z.strictObject({ address: z.string().nullable(), note: z.string() }).meta({ id: "Contact" });
export type Contact = z.infer<typeof Contact>;

const GatewayKey = z.strictObject({ key_id: z.string(), alg: z.literal("ed25519"), public_key: z.string() });

/** A key, an envelope, and its signature by that key. The key is published on purpose. */
export const TestVector = z
  .strictObject({
    alg: z.enum(["hmac-sha256", "ed25519"]),
    key: z.strictObject({
      secret: z.string().optional(),
      private_key: z.string().optional(),
      public_key: z.string().optional(),
    }),
    envelope: z.looseObject({}),
    canonical: z.string(),
    sig: z.string(),
  })
  .meta({ id: "TestVector" });
export type TestVector = z.infer<typeof TestVector>;

/** GET /v1/agents/{name}/credential. Source: docs/protocol.md#credentials. */
export const AgentCredential = z
  .strictObject({
    ok: z.literal(true),
    agent_id: AgentId,
    key_id: z.string(),
    credential: z.string(),
    issuer: z.string(),
    expires_at_iso: z.iso.datetime(),
  })
  .meta({ id: "AgentCredential" });

/** A credential with all derived values, for authors of their own check. */
export const CredentialTestVector = z
  .strictObject({
    issuer: IssuerRecord,
    /** Private key of the issuer, published on purpose. */
    issuer_private_key: z.string(),
    header: z.looseObject({}),
    claims: z.looseObject({}),
    credential: z.string(),
    key_id: z.string(),
  })
  .meta({ id: "CredentialTestVector" });
export type CredentialTestVector = z.infer<typeof CredentialTestVector>;

/** A sealed payload with all that is needed to open it. The texts are UTF-8. */
export const SealedPayloadTestVector = z
  .strictObject({
    recipient_key: z.strictObject({ private_key: z.string(), public_key: z.string() }),
    envelope: z.looseObject({}),
    aad: z.string(),
    plaintext: z.string(),
  })
  .meta({ id: "SealedPayloadTestVector" });
export type SealedPayloadTestVector = z.infer<typeof SealedPayloadTestVector>;

/** GET /.well-known/signing-manifest.json. Source: docs/protocol.md#signatures. */
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
    issuers: z.array(IssuerRecord).meta({ description: "Whose credentials this relay accepts, for which agents." }),
    websocket: z.strictObject({ urls: z.array(z.string()), limits: AnnouncedLimits }),
    test_vectors: z.array(TestVector),
    credential_test_vector: CredentialTestVector,
    sealed_payload_test_vector: SealedPayloadTestVector,
    self_test: PostLink,
    contact: Contact,
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
    canonical: Canonical.optional(),
    next_step: z.string(),
  })
  .meta({ id: "SelfTestPass" });

/** GET /health: the process runs. It does not depend on Redis. */
export const Health = z
  .strictObject({ ok: z.literal(true), service: z.string(), status: z.literal("healthy") })
  .meta({ id: "Health" });

const UnavailablePartitions = z.array(z.int().nonnegative()).meta({
  description: "Partitions whose agents are unavailable, while those of others go on. Counts are without them.",
});

/** Body of GET /api/onboarding/online-agents: counts only, never ids. */
export const OnlineAgents = z
  .strictObject({
    ok: z.literal(true),
    complete: z.boolean().meta({ description: "False while a part of the agents cannot be counted." }),
    unavailable_partitions: UnavailablePartitions.optional(),
    online_agents: z.int(),
    stale_agents: z.int(),
    offline_agents: z.int(),
    stale_after_ms: z.int(),
    by_severity: z.strictObject({ ok: z.int(), stale: z.int(), critical_stale: z.int(), offline: z.int() }),
    source: z.literal("websocket_presence"),
    next_action: z.string(),
    privacy: Privacy,
  })
  .meta({ id: "OnlineAgents" });

/**
 * Why a link to Redis takes no commands. Source: docs/operations.md#failures.
 * auth: Redis refuses user or password. refused: no connection. noperm: the user may not use a command or key.
 * version: Redis is too old. eviction: its policy evicts keys. timeout: no answer in time.
 * partitions: the window has another number of partitions. layout: the window is of another version's layout.
 * cluster: a Redis Cluster in place of a single Redis, or the reverse.
 * coverage: the cluster refuses all slots while some are not served. slots: no primary serves the slots.
 * readonly: a replica. disk: Redis cannot write to its disk. loading: Redis still loads data. full: no memory left.
 * other: any other answer of Redis.
 */
export const REDIS_DOWN_KINDS = [
  "auth",
  "refused",
  "noperm",
  "version",
  "eviction",
  "timeout",
  "partitions",
  "layout",
  "cluster",
  "coverage",
  "slots",
  "readonly",
  "disk",
  "loading",
  "full",
  "other",
] as const;
export type RedisDownKind = (typeof REDIS_DOWN_KINDS)[number];

/**
 * Why a service is not ready: a link to Redis is down, or no process window is open. In a pod also: its messages to
 * itself do not come back, or it is starting or draining.
 */
const NOT_READY_REASONS = [...REDIS_DOWN_KINDS, "no_window", "channel", "not_accepting"] as const;
export type NotReadyReason = (typeof NOT_READY_REASONS)[number];

/** What a ready service lacks for now. Source: docs/operations.md#failures. */
const DEGRADATIONS = ["redis_memory", "partitions", "control_slot", "keys_file"] as const;
export type Degradation = (typeof DEGRADATIONS)[number];

const readiness = {
  service: z.string(),
  online_agents: z.int().nullable(),
  stale_agents: z.int().nullable(),
  connections: z
    .int()
    .optional()
    .meta({ description: "Open websockets of all pods, as each told within 3.5 s. Absent while Redis does not say." }),
  reason: z.enum(NOT_READY_REASONS).optional(),
  degraded: z.array(z.enum(DEGRADATIONS)).optional().meta({
    description:
      "redis_memory: Redis is short of memory, and new sessions, Idempotency-Keys and agents are refused. partitions: those in unavailable_partitions are out of reach. control_slot: the slot of the whole window is; the service goes on in the window that it knows. keys_file: the keys file cannot be read or is invalid, and the keys that were read before go on.",
  }),
  unavailable_partitions: UnavailablePartitions.optional(),
  next_action: z.string(),
  privacy: Privacy,
};

/** 200 of GET /ready: the service can do its work. */
export const Ready = z.strictObject({ ok: z.boolean(), ready: z.boolean(), ...readiness }).meta({ id: "Ready" });

/** 503 of GET /ready: a problem document with the state of the service. */
export const NotReady = Problem.extend({ ready: z.literal(false), ...readiness }).meta({ id: "NotReady" });
