import type { AllowedNextStep, GuideNext } from "relay-protocol/contract/reports/guides.ts";
import { WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";
import { canDeliverRealtime } from "relay-window/presence/presence.ts";
import type { Target } from "relay-window/sessions/look-ups.ts";
import type { GuideContext } from "./guide-context.ts";
import { type GuideId, guideTemplate, guideUrl } from "./links.ts";
import { newerSessionOf, newestSessionOf } from "./own-session.ts";
import { sessionRequest, withoutSession } from "./session-request.ts";
import { stepToRequest } from "./standing.ts";
import { adviceAt, freshProof } from "./target-advice.ts";

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
