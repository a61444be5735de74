import type { z } from "zod";
import type { ErrorCode } from "./errors.ts";
import { CheckOnline, OnlineAgents } from "./presence.ts";
import { TrafficDaily } from "./reports.ts";
import { CheckOnlineQuery, FeedbackRequest, SimpleSendRequest, SimpleSessionRequest } from "./requests.ts";
import {
  AcceptedEnvelope,
  AcceptedSession,
  FeedbackAck,
  Health,
  Ready,
  SelfTestGuide,
  SelfTestPass,
  SignedEnvelope,
  SigningManifest,
} from "./responses.ts";
import { SessionRecord } from "./session.ts";

/**
 * The catalogue: every HTTP surface of the relay, once. The routers are mounted from it, and the documents, the edge
 * and the names in reports are made from it.
 */

/** The first websocket path; `RELAY_ALTERNATE_WS_PATH` is the other. */
export const WEBSOCKET_PATH = "/ws";

export type ServiceName = "gateway" | "ws-connector" | "ops-reporting";

/** One HTTP endpoint. */
export interface Surface {
  readonly method: "GET" | "POST";
  /** Main path, with OpenAPI parameters: `/sessions/{session_id}`. */
  readonly path: string;
  /** Paths that answer as the main path does, counted under the main path's name. */
  readonly aliases: readonly string[];
  /** The service that answers; `each` for the probes that every service has. */
  readonly service: ServiceName | "each";
  readonly group: "gateway" | "presence" | "feedback" | "diagnostics" | "self-test" | "discovery" | "probes";
  readonly summary: string;
  /** `x-api-key` is asked for. */
  readonly apiKey: boolean;
  readonly query: z.ZodType | null;
  readonly request: z.ZodType | null;
  readonly response: z.ZodType;
  /** Status of the answer when all is well. */
  readonly status: 200 | 202;
  readonly errors: readonly ErrorCode[];
  /** Counted in `surface_views` and `top_surfaces`: every GET but the health probes. */
  readonly traffic: boolean;
}

type Optional = "aliases" | "apiKey" | "query" | "request" | "status" | "errors" | "traffic";
type Declaration = Omit<Surface, Optional | "method"> & Partial<Pick<Surface, Optional>>;

/** What a declaration says is kept in its type, so that routers can be checked against the catalogue. */
type Declared<D extends Declaration> = Surface &
  Pick<D, "service" | "response"> & { readonly query: D extends { query: infer Query } ? Query : null };

const get = <const D extends Declaration>(declaration: D) =>
  ({
    method: "GET",
    aliases: [],
    apiKey: false,
    query: null,
    request: null,
    status: 200,
    errors: [],
    traffic: true,
    ...declaration,
  }) as Surface as Declared<D>;
const post = <const D extends Declaration>(declaration: D): Declared<D> => ({
  ...get(declaration),
  method: "POST",
  traffic: false,
});

const BODY_ERRORS = ["malformed_json", "invalid_request", "body_too_large", "unsupported_media_type"] as const;
const GATEWAY_ERRORS = [
  ...BODY_ERRORS,
  "invalid_api_key",
  "api_key_not_allowed_for_sender",
  "idempotency_in_progress",
  "idempotency_key_reused",
  "rate_limited",
  "unavailable",
] as const;
const INTAKE_ERRORS = [
  "malformed_json",
  "frame_too_large",
  "invalid_envelope",
  "clock_skew",
  "unknown_key",
  "bad_signature",
  "key_not_allowed",
] as const;

export const SURFACES = {
  sendMessage: post({
    path: "/v1/messages/send",
    service: "gateway",
    group: "gateway",
    summary: "Send a message; the gateway signs it.",
    apiKey: true,
    request: SimpleSendRequest,
    response: AcceptedEnvelope,
    status: 202,
    errors: GATEWAY_ERRORS,
  }),
  requestSession: post({
    path: "/v1/sessions/request",
    service: "gateway",
    group: "gateway",
    summary: "Request a session; the gateway signs the request.",
    apiKey: true,
    request: SimpleSessionRequest,
    response: AcceptedSession,
    status: 202,
    errors: GATEWAY_ERRORS,
  }),
  checkOnline: get({
    path: "/api/onboarding/check-online",
    service: "gateway",
    group: "presence",
    summary: "Presence of one agent, with recovery hints.",
    query: CheckOnlineQuery,
    response: CheckOnline,
    errors: ["invalid_request", "rate_limited", "unavailable"],
  }),
  onlineAgents: get({
    path: "/api/onboarding/online-agents",
    service: "gateway",
    group: "presence",
    summary: "Counts of agents by presence; never ids.",
    response: OnlineAgents,
    errors: ["unavailable"],
  }),
  readSession: get({
    path: "/sessions/{session_id}",
    service: "gateway",
    group: "presence",
    summary: "State of one session: ids, times and status, never contents.",
    response: SessionRecord,
    errors: ["unknown_session", "rate_limited", "unavailable"],
  }),
  submitFeedback: post({
    path: "/api/public/feedback",
    aliases: ["/api/feedback"],
    service: "gateway",
    group: "feedback",
    summary: "Give feedback; only aggregates are kept.",
    request: FeedbackRequest,
    response: FeedbackAck,
    status: 202,
    errors: [...BODY_ERRORS, "rate_limited", "unavailable"],
  }),
  selfTestGuide: get({
    path: "/api/self-test",
    service: "gateway",
    group: "self-test",
    summary: "How to sign, and how to test a signature.",
    response: SelfTestGuide,
  }),
  selfTest: post({
    path: "/api/self-test",
    service: "gateway",
    group: "self-test",
    summary: "Check a signed envelope as the websocket would, without accepting it.",
    request: SignedEnvelope,
    response: SelfTestPass,
    errors: [...INTAKE_ERRORS, "body_too_large", "unsupported_media_type", "rate_limited"],
  }),
  signingManifest: get({
    path: "/.well-known/signing-manifest.json",
    service: "gateway",
    group: "discovery",
    summary: "How envelopes are signed, the live gateway keys, test vectors.",
    response: SigningManifest,
    errors: ["unavailable"],
  }),
  trafficDaily: get({
    path: "/api/ops/traffic-daily",
    aliases: ["/api/ops/traffic-summary"],
    service: "ops-reporting",
    group: "diagnostics",
    summary: "Traffic of the process window: exact totals.",
    response: TrafficDaily,
    errors: ["unavailable"],
  }),
  health: get({
    path: "/health",
    service: "each",
    group: "probes",
    summary: "The process answers.",
    response: Health,
    traffic: false,
  }),
  ready: get({
    path: "/ready",
    service: "each",
    group: "probes",
    summary: "The service can do its work; connector counts and the next action.",
    response: Ready,
    errors: ["unavailable"],
    traffic: false,
  }),
} as const satisfies Record<string, Surface>;

/** Operation id of a surface, as in OpenAPI. */
export type SurfaceId = keyof typeof SURFACES;

const OPS_PATHS = /^\/api\/(?:ops(?:\/|$)|diagnostics$|feedback\/summary$)/;
const PUBLIC_PATHS = /^\/api\/public\//;

/**
 * The service that answers an HTTP request, known paths or not, so that a 404 too comes from one place.
 * Source: design, "Paths".
 */
export function serviceOf(method: string, path: string): "gateway" | "ops-reporting" {
  if (OPS_PATHS.test(path)) return "ops-reporting";
  if (PUBLIC_PATHS.test(path) && method !== "POST") return "ops-reporting";
  return "gateway";
}
