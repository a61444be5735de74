import { z } from "zod";
import {
  AgentManifest,
  AgentProgram,
  AgentReadableHealth,
  AsyncApiDocument,
  DiscoveryIndex,
  Instructions,
  OpenApiDocument,
  RelayManifest,
  RobotsText,
  SecurityText,
  SimpleCapabilities,
  Sitemap,
} from "./documents.ts";
import { SignedEnvelope } from "./envelope.ts";
import { Connectors, PackageBytes } from "./packages.ts";
import { CheckOnline } from "./presence.ts";
import { GUIDE_SURFACES, REPORT_SURFACES } from "./report-surfaces.ts";
import {
  CheckOnlineQuery,
  CredentialQuery,
  FeedbackRequest,
  normalise,
  OTHER,
  SelfTestQuery,
  SimpleSendRequest,
  SimpleSessionRequest,
} from "./requests.ts";
import {
  AcceptedEnvelope,
  AcceptedSession,
  AgentCredential,
  FeedbackAck,
  Health,
  OnlineAgents,
  Ready,
  SelfTestGuide,
  SelfTestPass,
  SigningManifest,
} from "./responses.ts";
import { SessionRecord } from "./session.ts";
import { BODY_ERRORS, get, post, type Surface } from "./surface.ts";

const GATEWAY_ERRORS = [
  ...BODY_ERRORS,
  "missing_api_key",
  "invalid_api_key",
  "api_key_not_allowed_for_sender",
  "idempotency_in_progress",
  "idempotency_key_reused",
  "rate_limited",
  "not_accepted_by_target",
  "over_capacity",
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
  "invalid_credential",
  "wrong_relay",
] as const;

/** The API: sends, sessions, presence, feedback, self-test. The gateway answers it. */
const GATEWAY_SURFACES = {
  sendMessage: post({
    path: "/v1/messages/send",
    service: "gateway",
    group: "gateway",
    summary: "Send a message; the gateway signs it.",
    apiKey: true,
    request: SimpleSendRequest,
    response: AcceptedEnvelope,
    status: 202,
    errors: [...GATEWAY_ERRORS, "frame_too_large"],
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
    summary: "Presence of one agent, with steps to recover.",
    query: CheckOnlineQuery,
    response: CheckOnline,
    errors: ["invalid_request", "rate_limited", "unavailable"],
  }),
  onlineAgents: get({
    path: "/api/onboarding/online-agents",
    service: "gateway",
    group: "presence",
    summary: "Counts of agents by presence, without ids.",
    response: OnlineAgents,
    errors: ["unavailable"],
  }),
  readSession: get({
    path: "/sessions/{session_id}",
    service: "gateway",
    group: "presence",
    summary: "State of one session: ids, times and status, without contents.",
    response: SessionRecord,
    errors: ["unknown_session", "rate_limited", "unavailable"],
  }),
  readCredential: get({
    path: "/v1/agents/{name}/credential",
    service: "gateway",
    group: "presence",
    summary: "The credential that an agent registered with last: check it with its issuer's public key.",
    query: CredentialQuery,
    response: AgentCredential,
    errors: ["unknown_agent", "invalid_request", "rate_limited", "unavailable"],
  }),
  submitFeedback: post({
    path: "/api/public/feedback",
    aliases: ["/api/feedback"],
    service: "gateway",
    group: "feedback",
    summary: "Send feedback; only aggregates are kept.",
    request: FeedbackRequest,
    response: FeedbackAck,
    status: 202,
    errors: [...BODY_ERRORS, "rate_limited", "unavailable"],
  }),
  selfTestGuide: get({
    path: "/api/self-test",
    service: "gateway",
    group: "self-test",
    summary: "How to sign, and how to check a signature.",
    response: SelfTestGuide,
  }),
  selfTest: post({
    path: "/api/self-test",
    service: "gateway",
    group: "self-test",
    summary: "Check a signed envelope as the websocket does, without accepting it.",
    query: SelfTestQuery,
    request: SignedEnvelope,
    response: SelfTestPass,
    errors: [...INTAKE_ERRORS, "invalid_request", "body_too_large", "unsupported_media_type", "rate_limited"],
  }),
} as const satisfies Record<string, Surface>;

/** Documents of discovery. The gateway answers them. */
const DISCOVERY_SURFACES = {
  signingManifest: get({
    path: "/.well-known/signing-manifest.json",
    service: "gateway",
    group: "discovery",
    summary: "How envelopes are signed, the keys of live gateways, and test vectors.",
    response: SigningManifest,
    errors: ["unavailable"],
  }),
  agentManifest: get({
    path: "/.well-known/agent.json",
    service: "gateway",
    group: "discovery",
    summary: "The signing manifest with links to API, readiness and handoff; not an A2A agent card.",
    response: AgentManifest,
    errors: ["unavailable"],
  }),
  relayManifest: get({
    path: "/.well-known/relay-manifest.json",
    service: "gateway",
    group: "discovery",
    summary: "What the relay is, its limits and scope, and links to every surface.",
    response: RelayManifest,
    revalidated: true,
  }),
  instructions: get({
    path: "/llms.txt",
    aliases: ["/.well-known/llms.txt"],
    service: "gateway",
    group: "discovery",
    summary: "Instructions for autonomous agents, with a program and a test vector.",
    response: Instructions,
    media: "text/plain",
    revalidated: true,
  }),
  agentProgram: get({
    path: "/examples/agent.mjs",
    service: "gateway",
    group: "discovery",
    summary: "The program of llms.txt, for Node 22 or later: it requests a session, or answers a request.",
    response: AgentProgram,
    media: "text/javascript",
    traffic: false,
  }),
  openapi: get({
    path: "/openapi.json",
    aliases: ["/.well-known/openapi.json"],
    service: "gateway",
    group: "discovery",
    summary: "Every HTTP surface, as OpenAPI 3.1.",
    response: OpenApiDocument,
    revalidated: true,
  }),
  asyncapi: get({
    path: "/asyncapi.json",
    service: "gateway",
    group: "discovery",
    summary: "The websocket, as AsyncAPI 3.0.",
    response: AsyncApiDocument,
    revalidated: true,
  }),
  discoveryIndex: get({
    path: "/API/discovery",
    service: "gateway",
    group: "discovery",
    summary: "Every surface of the relay, by group.",
    response: DiscoveryIndex,
  }),
  simpleCapabilities: get({
    path: "/v1/simple-capabilities",
    service: "gateway",
    group: "gateway",
    summary: "What callers with an API key can do, with examples and limits.",
    response: SimpleCapabilities,
  }),
  agentReadableHealth: get({
    path: "/health.agent_readable",
    service: "gateway",
    group: "probes",
    summary: "The live state, and what it means for an agent.",
    response: AgentReadableHealth,
    traffic: false,
  }),
  securityText: get({
    path: "/.well-known/security.txt",
    service: "gateway",
    group: "discovery",
    summary: "Where to report security problems, and what not to send.",
    response: SecurityText,
    media: "text/plain",
  }),
  robots: get({
    path: "/robots.txt",
    service: "gateway",
    group: "discovery",
    summary: "Rules for crawlers.",
    response: RobotsText,
    media: "text/plain",
  }),
  sitemap: get({
    path: "/sitemap.xml",
    service: "gateway",
    group: "discovery",
    summary: "Every page and document, for crawlers.",
    response: Sitemap,
    media: "application/xml",
  }),
} as const satisfies Record<string, Surface>;

/** Packages of the relay, so that clients need no registry. They are files, not documents, so a GET is no traffic. */
export const PACKAGE_SURFACES = {
  connectors: get({
    path: "/connectors",
    service: "gateway",
    group: "discovery",
    summary: "The packages that this relay hands out: versions, paths, sizes, digests, and how each is used.",
    response: Connectors,
    traffic: false,
  }),
  packageFile: get({
    path: "/packages/{file}",
    service: "gateway",
    group: "discovery",
    summary: "One version of a package; its bytes never change. The paths are listed by /connectors.",
    response: PackageBytes,
    media: "*/*",
    errors: ["not_found"],
    traffic: false,
  }),
  newestConnector: get({
    path: "/connector.tgz",
    service: "gateway",
    group: "discovery",
    summary:
      "The newest connector for npm, for download. Install by the path of a version, as /connectors lists it: npm keeps what an address gave it.",
    response: PackageBytes,
    media: "application/gzip",
    errors: ["not_found"],
    traffic: false,
  }),
} as const satisfies Record<string, Surface>;

const page = (path: string, summary: string) =>
  get({
    path,
    service: "gateway",
    group: "discovery",
    summary,
    response: z.string(),
    media: "text/html",
  });
const asset = (path: string, media: string, summary: string) =>
  get({
    path,
    service: "gateway",
    group: "discovery",
    summary,
    response: z.string(),
    media,
    traffic: false,
  });

/** Pages for people, with styles, scripts and icon. The gateway answers them. */
export const PAGE_SURFACES = {
  home: page("/", "What the relay is, with charts of the live window."),
  productDesign: page("/product/design", "How the relay is designed."),
  pageStyle: asset("/assets/relay.css", "text/css", "Styles of every page."),
  homeStyle: asset("/assets/home.css", "text/css", "Styles of the home page."),
  designStyle: asset("/assets/design.css", "text/css", "Styles of the design page."),
  homeScript: asset("/assets/home.js", "text/javascript", "Reads the reports for the home page."),
  figuresScript: asset("/assets/figures.js", "text/javascript", "Draws the charts of the home page."),
  favicon: asset("/favicon.svg", "image/svg+xml", "Icon of the relay."),
} as const satisfies Record<string, Surface>;

/** Probes that every service answers for itself. */
const PROBE_SURFACES = {
  health: get({
    path: "/health",
    service: "each",
    group: "probes",
    summary: "Whether the process runs.",
    response: Health,
    traffic: false,
  }),
  ready: get({
    path: "/ready",
    service: "each",
    group: "probes",
    summary: "Whether the service is ready; counts of agents and the next action.",
    response: Ready,
    errors: ["not_ready"],
    traffic: false,
  }),
} as const satisfies Record<string, Surface>;

/**
 * The catalogue: every HTTP surface of the relay. Routers, documents, the edge's routing and the names in reports come
 * from it.
 */
export const SURFACES = {
  ...GATEWAY_SURFACES,
  ...DISCOVERY_SURFACES,
  ...PACKAGE_SURFACES,
  ...PAGE_SURFACES,
  ...REPORT_SURFACES,
  ...GUIDE_SURFACES,
  ...PROBE_SURFACES,
};

/** Aliases of older clients. New clients use the main paths. Source: docs/protocol.md#versions. */
export const LEGACY_ALIASES: readonly string[] = ["/api/feedback", "/api/feedback/summary"];

/** The first websocket path. `RELAY_ALTERNATE_WS_PATH` is the other. */
export const WEBSOCKET_PATH = "/ws";

/** Operation id of a surface, as in OpenAPI. */
export type SurfaceId = keyof typeof SURFACES;

const OPS_PATHS = /^\/api\/(?:ops(?:\/|$)|diagnostics$|feedback\/summary$)/;
const PUBLIC_PATHS = /^\/api\/public\//;

/**
 * The service that answers an HTTP request. Unknown paths also have one, so each 404 comes from one service.
 * Source: docs/architecture.md#endpoints.
 */
export function serviceOf(method: string, path: string): "gateway" | "ops-reporting" {
  if (OPS_PATHS.test(path)) return "ops-reporting";
  if (PUBLIC_PATHS.test(path) && method !== "POST") return "ops-reporting";
  return "gateway";
}

/** Names of surfaces in feedback, beside the catalogue's operation ids and paths. */
const SURFACE_NAMES = ["websocket", "gateway", "connector", "docs", "home"] as const;

/** Labels of surfaces. A path counts as its operation. */
export const FEEDBACK_SURFACES: readonly string[] = [...new Set([...SURFACE_NAMES, ...Object.keys(SURFACES)])];

const SURFACE_LABELS: ReadonlyMap<string, string> = new Map([
  ...SURFACE_NAMES.map((name) => [name, name] as const),
  ...Object.entries(SURFACES).flatMap(([id, { path, aliases }]) =>
    [id, path, ...aliases].map((name) => [normalise(name), id] as const),
  ),
]);

/** The surface of a feedback: an operation id, a name of the list, or `other`. */
export function surfaceLabelOf(text: string | undefined): string {
  return SURFACE_LABELS.get(normalise(text ?? "")) ?? OTHER;
}
