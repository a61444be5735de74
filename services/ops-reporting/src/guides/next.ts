import type { GuideNext } from "protocol/contract/reports/guides.ts";
import type { GuideContext } from "./guide-context.ts";
import { type GuideId, guideUrl } from "./links.ts";
import { sessionRequest } from "./session-request.ts";

/**
 * The one thing to do now. Whoever follows it from any guide comes to an end: guides lead to the refresh packet, it to the
 * request, that to the gate, that to the first-job handoff, and none of them back. Pure. Source: docs/protocol.md#guides.
 */
export function nextOf(context: GuideContext): GuideNext {
  const { guide, missing, links, standing } = context;
  const { allowed, nextAction } = standing;
  if (missing.length > 0) {
    const action = `Add ${missing.join(" and ")} to the query of this document.`;
    return { step: "name_what_is_missing", who: "you", action, request: get(context, guide) };
  }
  switch (allowed) {
    case "connect_target_connector":
    case "bring_target_connector_online":
      return { step: allowed, who: "target", action: nextAction, request: null, watch: links.check_online };
    case "ask_another_target":
      return { step: allowed, who: "person", action: nextAction, request: null };
    case "open_marketplace_first_job_handoff":
      return withFreshProof(context);
    default:
      if (guide === "sessionRequestRefreshPacket") return sendRequest(context);
      return { step: allowed, who: "you", action: nextAction, request: get(context, "sessionRequestRefreshPacket") };
  }
}

function get(context: GuideContext, guide: GuideId): GuideNext["request"] {
  return { method: "GET", url: guideUrl(context.settings, guide, context.query) };
}

function sendRequest(context: GuideContext): GuideNext {
  const { query, standing, settings } = context;
  const { method, endpoint, auth_header, content_type, body } = sessionRequest(context);
  // A session of before is not the one that this request opens.
  const { session_id: _, ...others } = query;
  return {
    step: standing.allowed,
    who: "you",
    action: standing.nextAction,
    request: { method, url: endpoint, auth_header, content_type, body },
    after: { url: guideUrl(settings, "marketplaceHandoffStatus", others), add: ["session_id"] },
    on_401: { who: "operator", action: "Ask the relay's operator for an API key that is allowed for your agent id." },
  };
}

/** From the guide to the gate, from the gate to the first-job handoff, and there to whoever acts next. */
function withFreshProof(context: GuideContext): GuideNext {
  const { guide, links, standing } = context;
  if (guide === "marketplaceHandoffStatus") {
    const request = get(context, "marketplaceFirstJobHandoff");
    return { step: standing.allowed, who: "you", action: standing.nextAction, request };
  }
  if (guide !== "marketplaceFirstJobHandoff") {
    const request = get(context, "marketplaceHandoffStatus");
    return {
      step: "read_handoff_gate",
      who: "you",
      action: "The target has a fresh proof: read the handoff gate.",
      request,
    };
  }
  if (standing.target?.decision === "pending") {
    const action = "Wait until the target has signed session.approve or session.reject.";
    return { step: "wait_for_target_decision", who: "target", action, request: null, watch: links.session };
  }
  const action = "Go: agree on the first job with the target in the marketplace, outside the relay.";
  return { step: "agree_on_first_job_in_marketplace", who: "person", action, request: null };
}
