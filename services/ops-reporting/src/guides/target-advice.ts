import type { AllowedNextStep, SessionDecision } from "relay-protocol/contract/reports/guides.ts";
import { SESSION_OVER } from "relay-protocol/contract/session.ts";
import type { Target } from "relay-window/sessions/look-ups.ts";
import { inWindow, type WindowTimes } from "relay-window/window/readiness.ts";

/** What advice is made of, beside the target: its decision on the session of the query, and whose the proof is. */
export interface Known {
  readonly decision: SessionDecision | null;
  /** The asker sent the request that the proof is of; null where the asker may not know. */
  readonly isOwnProof: boolean | null;
  /** A handoff is permitted to the asker. */
  readonly isPermitted: boolean;
}

/** To who asks, about the target; what the target's owner does stands in connector_recovery. */
const ADVICE: Readonly<Record<Exclude<AllowedNextStep, "connect_target_connector">, string>> = {
  bring_target_connector_online: "The target is not online: ask again once its owner has brought it back.",
  request_session_with_online_target: "The target is online: send it a session request.",
  refresh_session_request_proof: "The target is online, its last proof is no longer fresh: send it a session request.",
  open_marketplace_first_job_handoff: "Go on to the first-job handoff.",
  wait_for_target_decision: "Wait until the target has signed session.approve or session.reject.",
  ask_another_target:
    "The target rejected the session: ask another target, or this one again once you can say in purpose what has changed.",
};

const NOT_PERMITTED = "Read in the first-job handoff what was decided on your newest session, or how to request one.";

/** Whose request the target's fresh proof is: another's is a go as well, and nothing that the asker has. Pure. */
export function freshProof({ decision, isOwnProof }: Known): string {
  if (decision === "approved") return "The request of this session is a fresh proof.";
  if (isOwnProof === true) return "The target has a fresh proof, of your own request.";
  const whose = isOwnProof === null ? "maybe of another agent's" : "of another agent's";
  return `The target has a fresh proof, ${whose} request: send one of your own if you have none.`;
}

function adviceOn(step: AllowedNextStep, known: Known, times: WindowTimes): string {
  if (step === "connect_target_connector") {
    return `Nobody has seen this target ${inWindow(times)}: ask again once its owner has connected it.`;
  }
  if (step !== "open_marketplace_first_job_handoff") return ADVICE[step];
  return `${freshProof(known)} ${known.isPermitted ? ADVICE[step] : NOT_PERMITTED}`;
}

/** What to do at a step of the way to this target. Pure. */
export function adviceAt({ presence }: Target, step: AllowedNextStep, known: Known, times: WindowTimes): string {
  const { decision } = known;
  const isOpen = step === "open_marketplace_first_job_handoff";
  const advice = adviceOn(step, known, times);
  if (decision === "unknown") return `No such session of yours. ${advice}`;
  if (decision === "expired")
    return step === "ask_another_target" ? SESSION_OVER : `Newer sessions took this one's place. ${advice}`;
  if ((decision === "pending" || decision === "approved") && !isOpen && step !== "wait_for_target_decision") {
    return `This session has no fresh proof. ${advice}`;
  }
  if (step === "bring_target_connector_online" && presence.isCongested) {
    return "The target is online and reads too slowly: ask again once it has read what waits for it.";
  }
  return advice;
}
