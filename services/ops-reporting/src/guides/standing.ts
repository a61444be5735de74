import type { Bottleneck } from "relay-protocol/contract/reports/common.ts";
import type { AllowedNextStep, GuideQuery, SessionDecision } from "relay-protocol/contract/reports/guides.ts";
import type { ActivationStatus } from "relay-protocol/contract/reports/traffic.ts";
import { SESSION_OVER } from "relay-protocol/contract/session.ts";
import { canDeliverRealtime, type PresenceCounts } from "relay-window/presence/presence.ts";
import type { Target } from "relay-window/sessions/look-ups.ts";
import { inWindow, type WindowTimes } from "relay-window/window/readiness.ts";
import { activationOf } from "../reports/activation.ts";
import { type AcceptedRequest, type ProofFreshness, proofFreshness } from "../reports/session-proofs.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";

type Settings = Pick<ReportSettings, "proofFreshnessMs" | "proofIdentities">;

/**
 * How far a handoff has come: of the target that was asked for, else of the whole window. Gates, figures and advice of a
 * guide are made of it alone. Source: docs/reports.md#one-target.
 */
export interface Standing {
  readonly freshness: ProofFreshness;
  /** Whether `from` sent the request that freshness is of; null without either, for the window, and where identities are hidden. */
  readonly isOwnProof: boolean | null;
  /** The request that freshness is of is known to be between agents of one principal. */
  readonly isWithinPrincipal: boolean;
  /** A handoff is permitted now, to who asks. */
  readonly isPermitted: boolean;
  readonly allowed: AllowedNextStep;
  readonly status: ActivationStatus;
  /** Null: nothing is missing. */
  readonly bottleneck: Bottleneck | null;
  /** What to do about it, in words. */
  readonly advice: string;
  /** Null for the whole window. */
  readonly target: Target | null;
  /** Of the target, on the session of the query; null without either. */
  readonly decision: SessionDecision | null;
}

/** Pure. */
export function windowStanding(source: ReportSource<"presence">, settings: Settings, query: GuideQuery): Standing {
  const { freshness, status, bottleneck, nextAction } = activationOf(source, settings);
  return {
    freshness,
    isOwnProof: null,
    isWithinPrincipal: source.lastOnlineProof?.samePrincipal === true,
    isPermitted: isPermitted(freshness, query, null),
    status,
    // A fresh proof permits a handoff, whoever is online by now; reports name that as what ails the window.
    bottleneck: freshness.state === "fresh" ? "none" : bottleneck,
    advice: nextAction,
    allowed: allowedInWindow(source.presence, freshness),
    target: null,
    decision: null,
  };
}

/** A fresh proof permits a handoff whether or not agents are online now. */
function allowedInWindow(presence: PresenceCounts, { state }: ProofFreshness): AllowedNextStep {
  const { ok, stale, critical_stale, offline } = presence;
  if (state === "fresh") return "open_marketplace_first_job_handoff";
  if (ok + stale + critical_stale + offline === 0) return "connect_target_connector";
  return ok === 0 ? "bring_target_connector_online" : requestStep(state);
}

/** Of one target: other agents count for nothing here. Pure. */
export function targetStanding(source: ReportSource, read: Target, settings: Settings, query: GuideQuery): Standing {
  const target = withRetainedProofs(read, source);
  const decision = decisionFor(query, target);
  const lastOnlineProof = onlineRequestOf(target, decision);
  const freshness = proofFreshness({ lastOnlineProof, now: source.now }, settings.proofFreshnessMs);
  const allowed = allowedAtTarget(target, freshness, decision);
  const isOwnProof = isOwn(lastOnlineProof?.requester, query.from, settings);
  const isWithinPrincipal = decision === null && isShownWithin(target, settings);
  const known = { decision, isOwnProof, isPermitted: isPermitted(freshness, query, decision) };
  const advice = adviceAt(target, allowed, known, source);
  const activation = activationAt(target, freshness, decision);
  return { freshness, ...known, isWithinPrincipal, allowed, ...activation, advice, target };
}

/** A fresh proof permits a handoff. To who asks for themselves it does so only in a session that the target approved. */
function isPermitted(
  { state }: ProofFreshness,
  { from, target_agent_id, session_id }: GuideQuery,
  decision: SessionDecision | null,
): boolean {
  const isForAsker = session_id !== undefined || (from !== undefined && target_agent_id !== undefined);
  return state === "fresh" && (!isForAsker || decision === "approved");
}

/** Where identities are hidden, asking with one id after the other would tell who asked whom. */
function isOwn(requester: string | undefined, from: string | undefined, { proofIdentities }: Settings): boolean | null {
  if (requester === undefined || from === undefined || proofIdentities === "hidden") return null;
  return requester === from;
}

/** Where identities are hidden, it would tell of a target that is named who asked it. */
function isShownWithin({ lastOnlineProof }: Target, { proofIdentities }: Settings): boolean {
  return proofIdentities !== "hidden" && lastOnlineProof?.samePrincipal === true;
}

/** A session is its requester's: to another it is unknown. */
function decisionFor({ from, session_id }: GuideQuery, { session }: Target): SessionDecision | null {
  if (session_id === undefined) return null;
  if (session === null || (from !== undefined && from !== session.requester)) return "unknown";
  return session.decision;
}

/**
 * The request that found the target online: that of the session which is named, never another's in its place; without a
 * session the target's last.
 */
function onlineRequestOf(
  { session, lastOnlineProof }: Target,
  decision: SessionDecision | null,
): (AcceptedRequest & { readonly requester: string }) | null {
  if (decision === null) return lastOnlineProof;
  if (session === null || decision === "unknown" || session.delivery !== "online") return null;
  return { requester: session.requester, acceptedAt: session.createdAt, targetStatus: session.delivery };
}

/** The target's own proof goes when it is no longer fresh: that there was one, the retained ones may still show. */
function withRetainedProofs(target: Target, { proofs }: ReportSource): Target {
  const own = proofs.filter((proof) => proof.target === target.agent);
  const times = [target.lastRequestAt, own[0]?.acceptedAt].filter((at) => at !== null && at !== undefined);
  return {
    ...target,
    lastOnlineProof: target.lastOnlineProof ?? own.find(({ targetStatus }) => targetStatus === "online") ?? null,
    lastRequestAt: times.length === 0 ? null : Math.max(...times),
  };
}

/** What the target decided comes first: its no, and its silence, end the way, however fresh the proof. */
function allowedAtTarget(target: Target, { state }: ProofFreshness, decision: SessionDecision | null): AllowedNextStep {
  const isOver = decision === "expired" && target.session?.isDisplaced === false;
  if (decision === "rejected" || isOver) return "ask_another_target";
  if (decision === "pending" && state === "fresh") return "wait_for_target_decision";
  if (decision === "pending" || decision === "expired") return stepToRequest(target, "none");
  if (state === "fresh") return "open_marketplace_first_job_handoff";
  return stepToRequest(target, state);
}

/** What comes before a session request, or the request. Pure. */
export function stepToRequest({ presence }: Target, state: ProofFreshness["state"]): AllowedNextStep {
  if (presence.status === "not_seen") return "connect_target_connector";
  return canDeliverRealtime(presence) ? requestStep(state) : "bring_target_connector_online";
}

function requestStep(state: ProofFreshness["state"]): AllowedNextStep {
  return state === "stale_refresh_due" ? "refresh_session_request_proof" : "request_session_with_online_target";
}

function activationAt(
  { presence, lastRequestAt }: Target,
  { state }: ProofFreshness,
  decision: SessionDecision | null,
): Pick<Standing, "status" | "bottleneck"> {
  if (state === "fresh") return { status: "proof_fresh", bottleneck: null };
  if (state === "stale_refresh_due") return { status: "proof_stale_refresh_due", bottleneck: "session_proof_stale" };
  if (presence.status === "not_seen") return { status: "waiting_for_connector", bottleneck: "no_connector_online" };
  if (!canDeliverRealtime(presence)) return { status: "waiting_for_online_target", bottleneck: "no_connector_online" };
  // Of a session that the asker does not have no request was accepted, whatever others requested.
  const wasRequested = lastRequestAt !== null && decision !== "unknown";
  const bottleneck = wasRequested ? "session_requests_only_to_offline_targets" : "no_session_request_accepted";
  return { status: "waiting_for_session_request", bottleneck };
}

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
