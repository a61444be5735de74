import { LIVENESS_CONTRACT } from "relay-protocol/contract/presence.ts";
import {
  GATE_GO,
  type RefreshPacket,
  type SessionRequestRefreshPacket,
  TARGET_PLACEHOLDER,
} from "relay-protocol/contract/reports/guides.ts";
import { ERRORS } from "relay-protocol/wire/errors.ts";
import { commonFields } from "./common-fields.ts";
import type { GuideContext } from "./guide-context.ts";
import { handoffGate } from "./handoff-gate.ts";
import { guideUrl } from "./links.ts";
import { isReadyToRun, leadsToRequest } from "./next.ts";
import { sessionRequest, withoutSession } from "./session-request.ts";

const HOLD_SECONDS = LIVENESS_CONTRACT.stability_hold_ms / 1000;

/** The fields of the answer to a session request that make it a proof. */
const PASS_WHEN = [
  { field: "accepted", equals: true },
  { field: "target_delivery.can_deliver_realtime", equals: true },
];

export function sessionRequestRefreshPacket(context: GuideContext): SessionRequestRefreshPacket {
  return { ...commonFields(context), ...refreshPacket(context) };
}

const STATUS = { none: "first_proof_due", stale_refresh_due: "refresh_due", fresh: "fresh" } as const;

/** The next session request, ready to send where neither agent is missing. Pure. */
export function refreshPacket(context: GuideContext): RefreshPacket {
  const { standing, settings, query, missing } = context;
  const { state } = standing.freshness;
  const { body, ...request } = sessionRequest(context);
  return {
    status: STATUS[state],
    action: standing.allowed,
    should_refresh_before_handoff: state !== "fresh",
    refresh_urgency: handoffGate(context).refresh_urgency,
    target_agent_id: query.target_agent_id ?? TARGET_PLACEHOLDER,
    ...request,
    request_body: body,
    // The request, not the document: under a fresh proof there is none to send.
    ready_to_run: isReadyToRun(context) && leadsToRequest(context),
    missing: [...missing],
    preflight_checklist: preflightChecklist(context),
    pass_when: PASS_WHEN,
    troubleshooting: TROUBLESHOOTING,
    post_refresh_gate: {
      method: "GET",
      // With the session that this request opens, not with one of before.
      endpoint: guideUrl(settings, "marketplaceHandoffStatus", withoutSession(query)),
      add: ["session_id"],
      pass_when: [
        { field: "status", equals: GATE_GO },
        { field: "target_decision", equals: "approved" },
        { field: "important_handoff_permitted_from_process_window", equals: true },
      ],
    },
  };
}

function preflightChecklist({ links, standing }: GuideContext): RefreshPacket["preflight_checklist"] {
  const expect = { field: "can_deliver_realtime", equals: true };
  const request = { method: "GET", url: links.check_online, expect } as const;
  const isNamed = standing.target !== null;
  return [
    { check: "Your API key is allowed for your agent id; it goes in the header only.", required: true },
    { check: "The target is online.", required: true, ...(isNamed ? { request } : {}) },
    { check: `It was held for ${HOLD_SECONDS} s: less likely to be lost.`, required: false },
  ];
}

/** What can come back for a request that runs as it stands: the acceptance that is no proof, and refusals. */
const TROUBLESHOOTING: RefreshPacket["troubleshooting"] = [
  {
    status: 202,
    code: null,
    fix: "If target_delivery.can_deliver_realtime is false, it is no proof: request again once the target is online.",
  },
  ...(["invalid_api_key", "api_key_not_allowed_for_sender", "rate_limited", "unavailable"] as const).map((code) => {
    const { httpStatus, hint } = ERRORS[code];
    return { status: httpStatus as number, code, fix: hint };
  }),
];
