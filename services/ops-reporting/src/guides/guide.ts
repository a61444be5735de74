import type { GUIDE_SURFACES } from "relay-protocol/contract/report-surfaces.ts";
import { PRIVACY, SCOPE_FLAGS } from "relay-protocol/contract/reports/common.ts";
import {
  type AllowedNextStep,
  type GuideFrame,
  type GuideLinks,
  type GuideNext,
  type GuideQuery,
  type MISSING_PARAMETERS,
  SENDER_PLACEHOLDER,
  type SessionDecision,
  TARGET_PLACEHOLDER,
} from "relay-protocol/contract/reports/guides.ts";
import { SURFACES, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { REPORT_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { canDeliverRealtime } from "relay-window/presence/presence.ts";
import type { Target } from "relay-window/sessions/look-ups.ts";
import { PROOF_BOUNDARIES } from "../reports/session-proofs.ts";
import type { OpsReportingSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { adviceAt, freshProof, type Standing, stepToRequest, targetStanding, windowStanding } from "./standing.ts";

export type GuideSettings = Pick<OpsReportingSettings, "baseUrl" | "wsUrl" | "proofFreshnessMs" | "proofIdentities">;
type Parameter = (typeof MISSING_PARAMETERS)[number];

/** What every guide is written from. */
export interface GuideContext {
  readonly guide: GuideId;
  readonly source: ReportSource<"presence">;
  readonly settings: GuideSettings;
  readonly query: GuideQuery;
  /** Query parameters without which the guide cannot print all its requests. */
  readonly missing: readonly Parameter[];
  readonly links: GuideLinks;
  readonly standing: Standing;
}

/** The gate and the way to it print no request that names the sender; the handoff names the session that it is made for. */
const NEEDS: Readonly<Record<GuideId, readonly Parameter[]>> = {
  activationPlan: ["from", "target_agent_id"],
  sessionRequestGuide: ["from", "target_agent_id"],
  sessionRequestRefreshPacket: ["from", "target_agent_id"],
  ecosystemHandoff: ["target_agent_id"],
  marketplaceFirstJobHandoff: ["from", "target_agent_id", "session_id"],
  marketplaceHandoffStatus: ["target_agent_id"],
};

/** Pure. @param target that the query names; null without one. */
export function guideContext(
  guide: GuideId,
  source: ReportSource<"presence">,
  settings: GuideSettings,
  query: GuideQuery = {},
  target: Target | null = null,
): GuideContext {
  const standing =
    target === null ? windowStanding(source, settings, query) : targetStanding(source, target, settings, query);
  return {
    guide,
    source,
    settings,
    query,
    missing: NEEDS[guide].filter((name) => query[name] === undefined),
    links: guideLinks(settings, query, standing.decision),
    standing,
  };
}

export type GuideId = keyof typeof GUIDE_SURFACES;
type Addresses = Pick<OpsReportingSettings, "baseUrl">;

/**
 * URL of a guide with the query that was asked with; of the settings, never of the Host header, which the client writes.
 * Agent and session ids need no escaping in a query.
 */
export function guideUrl({ baseUrl }: Addresses, guide: GuideId, query: GuideQuery): string {
  const named = Object.entries(query).filter(([, value]) => value !== undefined);
  const text = named.map(([name, value]) => `${name}=${value}`).join("&");
  return baseUrl + SURFACES[guide].path + (text === "" ? "" : `?${text}`);
}

/** The same with the parameters that it lacks, as a template by RFC 6570. */
export function guideTemplate(
  settings: Addresses,
  guide: GuideId,
  query: GuideQuery,
  missing: readonly (keyof GuideQuery)[],
): string {
  const url = guideUrl(settings, guide, query);
  return `${url}{${url.includes("?") ? "&" : "?"}${missing.join(",")}}`;
}

/** @param decision on the session of the query: one that is unknown has no address. */
export function guideLinks(
  { baseUrl }: Addresses,
  { target_agent_id, session_id }: GuideQuery,
  decision: SessionDecision | null,
): GuideLinks {
  const session = decision === "unknown" ? undefined : session_id;
  return {
    check_online:
      baseUrl +
      SURFACES.checkOnline.path +
      (target_agent_id === undefined ? "{?agent_id}" : `?agent_id=${target_agent_id}`),
    session: baseUrl + SURFACES.readSession.path.replace("{session_id}", session ?? "{session_id}"),
    session_proof_retention: baseUrl + SURFACES.sessionProofRetention.path,
    signing_manifest: baseUrl + SURFACES.signingManifest.path,
    discovery: baseUrl + SURFACES.discoveryIndex.path,
  };
}

/** Which of the addresses still have braces. */
export function templatesOf(links: GuideLinks, { request }: GuideNext): GuideFrame["templates"] {
  const urls = { check_online: links.check_online, session: links.session, next: request?.url ?? "" };
  return (["check_online", "session", "next"] as const).filter((name) => isTemplate(urls[name]));
}

/** The request of a step that reads a link: none while the link is a template. */
export function readOf(url: string): { readonly method?: "GET"; readonly url?: string } {
  return isTemplate(url) ? {} : { method: "GET", url };
}

function isTemplate(url: string): boolean {
  return url.includes("{");
}

/** The session request that guides print: the same in each. An unnamed agent is a placeholder, which no agent can have as an id. */
export function sessionRequest({ settings, query }: Pick<GuideContext, "settings" | "query">) {
  return {
    method: "POST",
    endpoint: settings.baseUrl + SURFACES.requestSession.path,
    auth_header: "x-api-key",
    content_type: "application/json",
    body: bodyOf(query),
  } as const;
}

/** The agents alone: a session of before is not the one that a request opens. */
export function withoutSession({ session_id: _, ...agents }: GuideQuery): GuideQuery {
  return agents;
}

function bodyOf({ from, target_agent_id }: GuideQuery) {
  return {
    from: from ?? SENDER_PLACEHOLDER,
    to: target_agent_id ?? TARGET_PLACEHOLDER,
    purpose: "Prove live negotiation through the relay before a handoff.",
    ttl_minutes: SESSION_LIMITS.ttlMinutesDefault,
  };
}

/**
 * The newest session of the asker with the target that its last proof or the retained ones name; none where the operator hides
 * identities, for asking with one id after the other would tell who asked whom. Pure. Source: docs/reports.md#one-target.
 */
export function newestSessionOf(
  { source, query, settings }: GuideContext,
  target: Target,
  requester = query.from,
): string | undefined {
  if (settings.proofIdentities === "hidden") return undefined;
  const proofs = [target.lastOnlineProof, ...source.proofs].filter(
    (proof) => proof?.requester === requester && proof?.target === target.agent,
  );
  // The target is read apart from the retained proofs, so either may be ahead.
  const [newest] = proofs.sort((one, other) => (other?.acceptedAt ?? 0) - (one?.acceptedAt ?? 0));
  return newest?.sessionId;
}

/** A newer session of the same requester, where the one that is named had to make room; undefined else. Pure. */
export function newerSessionOf(context: GuideContext): string | undefined {
  const { target, decision, allowed } = context.standing;
  if (target === null || decision !== "expired" || allowed === "ask_another_target") return undefined;
  const newest = newestSessionOf(context, target, target.session?.requester);
  return newest === context.query.session_id ? undefined : newest;
}

/**
 * The one thing to do now. Whoever follows it from any guide comes to an end: guides lead to the refresh packet, it to the
 * request, that to the gate, that, once the target approved, to the first-job handoff of its session, and none of them back.
 * Without a session the handoff leads to the newest one, or to the request. Pure. Source: docs/protocol.md#guides.
 */
export function nextOf(context: GuideContext): GuideNext {
  const { missing, standing } = context;
  const { allowed, advice, target } = standing;
  const canGoOn = missing.every((name) => name === "session_id");
  if (target === null || !canGoOn) return nameWhatIsMissing(context);
  if (allowed === "open_marketplace_first_job_handoff") return withFreshProof(context, target);
  const newer = newerSessionOf(context);
  if (newer !== undefined) return readNewestSession(context, newer);
  const asks = context.guide === "sessionRequestRefreshPacket" ? sendRequest : readPacket;
  return towardsRequest(context, allowed, advice, asks);
}

/** All that the guide prints runs as it stands and can reach the target, and it is the asker's turn. */
export function isReadyToRun(context: GuideContext): boolean {
  const { missing, standing } = context;
  if (missing.length > 0 || standing.target === null) return false;
  return canDeliverRealtime(standing.target.presence) && nextOf(context).request !== null;
}

/** False under a fresh proof, and where a newer session of the asker's decides. */
export function leadsToRequest(context: GuideContext): boolean {
  return context.standing.allowed !== "open_marketplace_first_job_handoff" && newerSessionOf(context) === undefined;
}

/** The address of the same guide would be a loop for who sends it as it stands: so it is a template of what is missing. */
function nameWhatIsMissing({ guide, missing, settings, query, standing }: GuideContext): GuideNext {
  // Who has not requested one yet has no session.
  const needed = missing.filter((name) => name !== "session_id").join(" and ");
  const session = missing.includes("session_id") ? ", and session_id once you have a session" : "";
  const action = `Add ${needed} to the query of this document${session}. ${standing.advice}`;
  const url = guideTemplate(settings, guide, query, missing);
  return { step: "name_what_is_missing", who: "you", action, request: { method: "GET", url } };
}

/** The asker's own part of a step. */
type Asking = Pick<GuideNext, "request" | "websocket_envelope" | "after" | "on_401"> &
  Partial<Pick<GuideNext, "action">>;

const REFUSED =
  "Ask the relay's operator for an API key that is allowed for your agent id; or, with a signing key, send websocket_envelope on a connection on which you are registered: its ack has the session_id.";

/** @param ask the asker's own part of the way, once the target is online. */
function towardsRequest(
  context: GuideContext,
  step: AllowedNextStep,
  action: string,
  ask: (context: GuideContext) => Asking,
): GuideNext {
  switch (step) {
    case "connect_target_connector":
    case "bring_target_connector_online":
      return { step, who: "target", action, request: null, watch: context.links.check_online };
    case "wait_for_target_decision":
      return { step, who: "target", action, request: null, watch: context.links.session };
    case "ask_another_target":
      return { step, who: "person", action, request: null };
    default:
      return { step, who: "you", action, ...ask(context) };
  }
}

function readPacket(context: GuideContext): Pick<GuideNext, "action" | "request"> {
  const action = `${context.standing.advice} Read the packet.`;
  return { action, request: get(context, "sessionRequestRefreshPacket") };
}

function sendRequest(context: GuideContext): Asking {
  const { query, settings } = context;
  const { method, endpoint, auth_header, content_type, body } = sessionRequest(context);
  const { from: _from, to, ...payload } = body;
  return {
    request: { method, url: endpoint, auth_header, content_type, body },
    websocket_envelope: { url: settings.wsUrl + WEBSOCKET_PATH, type: "session.request", to, payload },
    after: { url: guideUrl(settings, "marketplaceHandoffStatus", withoutSession(query)), add: ["session_id"] },
    on_401: { who: "operator", action: REFUSED },
  };
}

/** From the guide to the gate, from the gate to the first-job handoff, and there to whoever acts next. */
function withFreshProof(context: GuideContext, target: Target): GuideNext {
  const { guide, standing } = context;
  const { allowed, advice, decision } = standing;
  if (guide === "marketplaceHandoffStatus") {
    return { step: allowed, who: "you", action: advice, request: get(context, "marketplaceFirstJobHandoff") };
  }
  if (guide !== "marketplaceFirstJobHandoff") {
    const action = `${freshProof(standing)} Read the handoff gate.`;
    return { step: "read_handoff_gate", who: "you", action, request: get(context, "marketplaceHandoffStatus") };
  }
  if (decision === null) return withoutSessionNamed(context, target);
  const action = "Go: agree on the first job with the target in the marketplace, outside the relay.";
  return { step: "agree_on_first_job_in_marketplace", who: "person", action, request: null };
}

/** A first job is agreed on in a session of one's own: whoever's proof is fresh, the asker's newest session decides, else a new one. */
function withoutSessionNamed(context: GuideContext, target: Target): GuideNext {
  const newest = newestSessionOf(context, target);
  if (newest !== undefined) return readNewestSession(context, newest);
  const step = stepToRequest(target, "none");
  // The packet would lead whoever has a fresh proof back here.
  return towardsRequest(context, step, adviceAt(target, step, context.standing, context.source), sendRequest);
}

function readNewestSession({ guide, settings, query }: GuideContext, session_id: string): GuideNext {
  const url = guideUrl(settings, guide, { ...query, session_id });
  const action = "Read this document for your newest session with the target.";
  return { step: "read_newest_session", who: "you", action, request: { method: "GET", url } };
}

function get({ settings, query }: GuideContext, guide: GuideId): GuideNext["request"] {
  return { method: "GET", url: guideUrl(settings, guide, query) };
}

/** The fields that all guides have in common. */
export function commonFields(context: GuideContext): GuideFrame {
  const { source, settings, query, missing, links, standing } = context;
  const next = nextOf(context);
  return {
    ok: true,
    service: "agent-relay",
    window_started_at: source.windowStartedAt,
    generated_at: source.now,
    max_behind_ms: REPORT_LIMITS.maxBehindMs,
    target_agent_id: query.target_agent_id ?? TARGET_PLACEHOLDER,
    ready_to_run: isReadyToRun(context),
    missing: [...missing],
    next,
    next_action: next.action,
    target_decision: standing.decision,
    links,
    templates: templatesOf(links, next),
    feedback: { method: "POST", url: settings.baseUrl + SURFACES.submitFeedback.path },
    proof_boundaries: PROOF_BOUNDARIES,
    ...SCOPE_FLAGS,
    privacy: PRIVACY,
  };
}
