import type { AllowedNextStep, SessionDecision } from "protocol/contract/reports/guides.ts";
import type { Target } from "window/targets.ts";

/** To who asks, about the target; what the target's owner does stands in connector_recovery. */
const ADVICE: Readonly<Record<AllowedNextStep, string>> = {
  connect_target_connector: "Nobody has seen this target in this window: ask again once its owner has connected it.",
  bring_target_connector_online: "The target is not online: ask again once its owner has brought it back.",
  request_session_with_online_target: "The target is online: send it a session request.",
  refresh_session_request_proof: "The target is online, its last proof is no longer fresh: send it a session request.",
  open_marketplace_first_job_handoff: "The target has a fresh proof: go on to the first-job handoff.",
  ask_another_target: "The target rejected the session: ask another target.",
};

/** What to do at a step of the way to this target. Pure. @param decision on the session of the query. */
export function adviceAt({ presence }: Target, step: AllowedNextStep, decision: SessionDecision | null): string {
  if (decision === "unknown") return `No such session of yours. ${ADVICE[step]}`;
  if (decision === "expired")
    return `The session expired: its time ran out, or newer ones took its place. ${ADVICE[step]}`;
  if ((decision === "pending" || decision === "approved") && step !== "open_marketplace_first_job_handoff") {
    return `The request of this session is no fresh proof: the target was away, or it was too long ago. ${ADVICE[step]}`;
  }
  if (step === "bring_target_connector_online" && presence.isCongested) {
    return "The target is online and reads too slowly: ask again once it has read what waits for it.";
  }
  return ADVICE[step];
}
