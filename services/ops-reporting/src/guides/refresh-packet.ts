import { ERRORS } from "@agent-relay/shared/contract/errors.ts";
import { SESSION_LIMITS } from "@agent-relay/shared/contract/limits.ts";
import { LIVENESS_CONTRACT } from "@agent-relay/shared/contract/presence.ts";
import {
  GATE_GO,
  GATE_NO_GO,
  SENDER_PLACEHOLDER,
  TARGET_PLACEHOLDER,
} from "@agent-relay/shared/contract/reports/guides.ts";
import type {
  RefreshPacket,
  SessionRequestRefreshPacket,
} from "@agent-relay/shared/contract/reports/guides-session-request.ts";
import { SURFACES } from "@agent-relay/shared/contract/surfaces.ts";
import { handoffGate } from "./figures.ts";
import { type GuideView, guideFrame } from "./view.ts";

/** What the answer to a session request must say to be a proof. */
export const PASS_WHEN = [
  { field: "accepted", equals: true },
  { field: "target_delivery.can_deliver_realtime", equals: true },
];

export function sessionRequestRefreshPacket(view: GuideView): SessionRequestRefreshPacket {
  return { ...guideFrame(view), ...refreshPacket(view) };
}

const STATUS = { none: "first_proof_due", stale_refresh_due: "refresh_due", fresh: "fresh" } as const;

/** The next session request, ready to send once its placeholders are filled in. Pure. */
export function refreshPacket(view: GuideView): RefreshPacket {
  const { target, links, nextStep, negotiation } = view;
  const { state } = negotiation.freshness;
  return {
    status: STATUS[state],
    action: nextStep.step,
    should_refresh_before_handoff: state !== "fresh",
    refresh_urgency: handoffGate(view).refresh_urgency,
    target_agent_id: target,
    method: "POST",
    endpoint: links.session_request,
    auth_header: "x-api-key",
    content_type: "application/json",
    request_body: {
      from: SENDER_PLACEHOLDER,
      to: target,
      purpose: "Prove live negotiation through the relay before a handoff.",
      ttl_minutes: SESSION_LIMITS.ttlMinutesDefault,
    },
    fill_in: placeholdersFor(target),
    preflight_checklist: preflightChecklist(view),
    pass_when: PASS_WHEN,
    troubleshooting: TROUBLESHOOTING,
    post_refresh_gate: {
      method: "GET",
      endpoint: links.marketplace_handoff_status,
      field: "status",
      go: GATE_GO,
      no_go: GATE_NO_GO,
    },
  };
}

function placeholdersFor(target: string): RefreshPacket["fill_in"] {
  const sender = {
    field: "from",
    placeholder: SENDER_PLACEHOLDER,
    with: "your agent id, for which your API key is allowed",
  } as const;
  if (target !== TARGET_PLACEHOLDER) return [sender];
  return [
    sender,
    {
      field: "to",
      placeholder: TARGET_PLACEHOLDER,
      with: "the agent you want to reach; or ask with ?target_agent_id=",
    },
  ];
}

function preflightChecklist({ links }: GuideView): RefreshPacket["preflight_checklist"] {
  const isOnline = {
    method: "GET",
    url: links.check_online,
    expect: { field: "can_deliver_realtime", equals: true },
  } as const;
  return [
    { check: "You hold an API key that is allowed for your agent id; it goes into the header only.", required: true },
    { check: "The target is online.", required: true, request: { ...isOnline, after_ms: 0 } },
    {
      check: "The target is still online after the stability hold: its connection is stable.",
      required: false,
      request: { ...isOnline, after_ms: LIVENESS_CONTRACT.stability_hold_ms },
    },
  ];
}

/** The acceptance that is no proof, and every refusal in the words of the error catalogue. */
const TROUBLESHOOTING: RefreshPacket["troubleshooting"] = [
  {
    status: 202,
    code: null,
    symptom: "target_delivery.can_deliver_realtime is false: the request is accepted and pending, and no proof.",
    fix: "Bring the target's connector online, check it, and send the request again.",
  },
  ...SURFACES.requestSession.errors.map((code) => {
    const { httpStatus, title, hint } = ERRORS[code];
    return { status: httpStatus as number, code, symptom: title, fix: hint };
  }),
];
