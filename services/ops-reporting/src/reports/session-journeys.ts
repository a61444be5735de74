import { STAGES, type StageName } from "@agent-relay/shared/contract/reports/activation-funnel.ts";
import { PRIVACY } from "@agent-relay/shared/contract/reports/common.ts";
import {
  JOURNEY_BOUNDS,
  type JourneyDropOff,
  type JourneySummary,
  type SessionJourney,
  type SessionJourneys,
} from "@agent-relay/shared/contract/reports/session-journeys.ts";
import { SURFACES, type SurfaceId } from "@agent-relay/shared/contract/surfaces.ts";
import type { Journey } from "@agent-relay/shared/window/journeys.ts";
import type { WindowSnapshot } from "@agent-relay/shared/window/snapshot.ts";

/** Where an action stands on the path; whatever is not here is reading, and so discovery. */
const STAGE_OF_ACTION: Readonly<Record<string, StageName>> = {
  checkOnline: "connector_onboarding",
  selfTest: "connector_onboarding",
  sendMessage: "message_delivery",
  requestSession: "session_negotiation",
  readSession: "session_negotiation",
  submitFeedback: "feedback",
} satisfies { readonly [Id in SurfaceId]?: StageName };

type Source = Pick<WindowSnapshot, "now" | "windowStartedAt" | "journeys" | "visitors">;

/** What visitors did, and where they stopped. Pure. @param baseUrl address of the links. */
export function sessionJourneys(source: Source, baseUrl: string): SessionJourneys {
  const { now, windowStartedAt, journeys } = source;
  const summary = journeySummary(source);
  const { largest_drop_off } = summary;
  return {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.sessionJourneys.path,
    scope: "process_window",
    window_started_at: windowStartedAt,
    generated_at: now,
    path: [...STAGES],
    stage_of_action: STAGE_OF_ACTION,
    ...summary,
    next_action: overallAction(journeys.length, largest_drop_off, baseUrl),
    journeys: journeys.map((journey, index) => shown(journey, index + 1, now, baseUrl)),
    caveat:
      "HTTP requests alone: what an agent sends over the websocket belongs to no journey. A visitor is an address and " +
      "user agent, known by a salted hash that is in no report. Where a journey stopped is judged by its retained actions.",
    privacy: PRIVACY,
  };
}

/** What the journeys come to. Pure. */
export function journeySummary({ journeys, visitors }: Pick<Source, "journeys" | "visitors">): JourneySummary {
  const stopped = journeys.map(stageReached);
  const drop_offs = STAGES.slice(0, -1).map((stage, index) => ({
    stage,
    next_stage: STAGES[index + 1] as StageName,
    count: stopped.filter((reached) => reached === stage).length,
  }));
  const largest = Math.max(...drop_offs.map(({ count }) => count));
  return {
    totals: {
      journeys: journeys.length,
      events: journeys.reduce((sum, { count }) => sum + count, 0),
      retained_actions: journeys.reduce((sum, { actions }) => sum + actions.length, 0),
      completed: stopped.filter((reached) => reached === "feedback").length,
      unique_sessions: visitors,
    },
    bounds: JOURNEY_BOUNDS,
    drop_offs,
    largest_drop_off: largest === 0 ? null : (drop_offs.find(({ count }) => count === largest) as JourneyDropOff),
  };
}

/**
 * The furthest stage of the path. Stages may be skipped, as a gateway client needs no connector; but feedback from
 * someone who never negotiated tells why they stopped, and is not the end of the path.
 */
function stageReached({ actions }: Journey): StageName {
  const reached = new Set(actions.map(({ name }) => stageOf(name)));
  if (reached.has("session_negotiation")) return reached.has("feedback") ? "feedback" : "session_negotiation";
  if (reached.has("message_delivery")) return "message_delivery";
  return reached.has("connector_onboarding") ? "connector_onboarding" : "discovery";
}

function stageOf(name: string): StageName {
  return (Object.hasOwn(STAGE_OF_ACTION, name) && STAGE_OF_ACTION[name]) || "discovery";
}

function shown(journey: Journey, number: number, now: number, baseUrl: string): SessionJourney {
  const { firstSeen, lastSeen, count, actions } = journey;
  const reached = stageReached(journey);
  const next_stage = STAGES[STAGES.indexOf(reached) + 1];
  return {
    journey: number,
    first_seen: firstSeen,
    first_seen_iso: new Date(firstSeen).toISOString(),
    last_seen: lastSeen,
    last_seen_iso: new Date(lastSeen).toISOString(),
    idle_ms: Math.max(0, now - lastSeen),
    event_count: count,
    actions: actions.map(({ name, at }) => ({ action: name, at })),
    actions_truncated: count > actions.length,
    drop_off: next_stage === undefined ? null : { stage: reached, next_stage },
    next_best_action: nextBestAction(reached, baseUrl),
  };
}

/** What takes a visitor from the stage reached to the next one. */
function nextBestAction(reached: StageName, baseUrl: string): string {
  switch (reached) {
    case "discovery":
      return `Test a signed envelope with POST ${baseUrl}${SURFACES.selfTest.path}, connect, and check yourself with GET ${baseUrl}${SURFACES.checkOnline.path}.`;
    case "connector_onboarding":
      return `Send a first message with POST ${baseUrl}${SURFACES.sendMessage.path}.`;
    case "message_delivery":
      return `Request a session with an online target: POST ${baseUrl}${SURFACES.requestSession.path}.`;
    case "session_negotiation":
      return `Say how it went with POST ${baseUrl}${SURFACES.submitFeedback.path}.`;
    case "feedback":
      return `Request the next session before the proof expires: POST ${baseUrl}${SURFACES.requestSession.path}.`;
  }
}

function overallAction(journeys: number, largest: JourneyDropOff | null, baseUrl: string): string {
  if (journeys === 0) return "Nobody came by HTTP in this window yet: share the address of the relay with an agent.";
  if (largest === null) return "Every journey went the whole path: nothing to mend.";
  return `${largest.count} of ${journeys} journeys stopped after ${largest.stage}. What comes next there: ${nextBestAction(largest.stage, baseUrl)}`;
}
