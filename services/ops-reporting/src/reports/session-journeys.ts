import { PRIVACY } from "relay-protocol/contract/reports/common.ts";
import {
  JOURNEY_BOUNDS,
  JOURNEY_RESOLUTION_MS,
  type JourneyDropOff,
  type JourneySummary,
  type SessionJourney,
  type SessionJourneys,
  STAGE_OF_ACTION,
  STAGES,
  type StageName,
} from "relay-protocol/contract/reports/traffic.ts";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import type { JsonText } from "relay-runtime/http/router.ts";
import type { Journey } from "relay-window/counters/journeys.ts";
import type { ReportSettings } from "../settings.ts";
import type { ReportSource } from "../window-reader.ts";
import { completenessOf } from "./figures.ts";

/**
 * What visitors did, and after which stage they stopped: the text of a SessionJourneys. Pure. Of a full window it is 560 KB,
 * so what stays the same of a journey is made text once.
 */
export function sessionJourneys(
  source: ReportSource<"journeys">,
  { baseUrl }: ReportSettings,
): JsonText<SessionJourneys> {
  const { now, windowStartedAt, journeys } = source;
  const summary = journeySummary(source);
  const { largest_drop_off } = summary;
  const head: Omit<SessionJourneys, "journeys"> = {
    ok: true,
    service: "agent-relay",
    endpoint: SURFACES.sessionJourneys.path,
    scope: "process_window",
    window_started_at: windowStartedAt,
    generated_at: now,
    ...completenessOf(source),
    path: [...STAGES],
    stage_of_action: STAGE_OF_ACTION,
    ...summary,
    next_action: overallAction(journeys.length, largest_drop_off, baseUrl),
    caveat:
      "HTTP requests only: what an agent sends over the websocket belongs to no journey. A visitor is an address and a " +
      "user agent, stored as a salted hash that no report shows. Where a journey stopped is judged by the furthest stage that any of its actions reached, those included that are no longer listed.",
    privacy: PRIVACY,
  };
  const entries = journeys.map((journey, index) => entryText(journey, index + 1, source, baseUrl));
  return `${JSON.stringify(head).slice(0, -1)},"journeys":[${entries.join()}]}` as JsonText<SessionJourneys>;
}

/** How many journeys stopped after which stage. Pure. */
export function journeySummary({ journeys, visitors }: ReportSource<"journeys">): JourneySummary {
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
 * The furthest stage of the path. Stages may be skipped, as a gateway client needs no connector. Feedback completes the
 * path only after a session request: without one it tells why the visitor stopped earlier.
 */
function stageReached({ stages }: Journey): StageName {
  if (stages.has("session_negotiation")) return stages.has("feedback") ? "feedback" : "session_negotiation";
  if (stages.has("message_delivery")) return "message_delivery";
  return stages.has("connector_onboarding") ? "connector_onboarding" : "discovery";
}

/**
 * The beginning of the minute, never before the window's. Session proofs name agents with their times: a journey in
 * milliseconds could be told whose it is by them.
 */
function minuteOf(time: number, windowStartedAt: number): number {
  return Math.max(windowStartedAt, time - (time % JOURNEY_RESOLUTION_MS));
}

type Times = Pick<ReportSource, "now" | "windowStartedAt">;

/** What a report says of a journey that stays the same until something is added to it. */
type Lasting = Omit<SessionJourney, "journey" | "idle_ms" | "next_best_action">;

/** Texts of these. A reader gives the same object for as long as a journey stays the same. */
const LASTING_TEXTS = new WeakMap<Journey, string>();

/** The text of a SessionJourney. */
function entryText(journey: Journey, number: number, { now, windowStartedAt }: Times, baseUrl: string): string {
  const entry: Omit<SessionJourney, keyof Lasting> = {
    journey: number,
    idle_ms: Math.max(0, now - minuteOf(journey.lastSeen, windowStartedAt)),
    next_best_action: nextBestAction(stageReached(journey), baseUrl),
  };
  return `${JSON.stringify(entry).slice(0, -1)},${lastingText(journey, windowStartedAt).slice(1)}`;
}

function lastingText(journey: Journey, windowStartedAt: number): string {
  const kept = LASTING_TEXTS.get(journey);
  if (kept !== undefined) return kept;
  const text = JSON.stringify(lastingOf(journey, windowStartedAt));
  LASTING_TEXTS.set(journey, text);
  return text;
}

function lastingOf(journey: Journey, windowStartedAt: number): Lasting {
  const { count, actions } = journey;
  const [firstSeen, lastSeen] = [
    minuteOf(journey.firstSeen, windowStartedAt),
    minuteOf(journey.lastSeen, windowStartedAt),
  ];
  const reached = stageReached(journey);
  const next_stage = STAGES[STAGES.indexOf(reached) + 1];
  return {
    first_seen: firstSeen,
    first_seen_iso: new Date(firstSeen).toISOString(),
    last_seen: lastSeen,
    last_seen_iso: new Date(lastSeen).toISOString(),
    event_count: count,
    actions: actions.map(({ name, at }) => ({ action: name, at: minuteOf(at, windowStartedAt) })),
    actions_truncated: count > actions.length,
    drop_off: next_stage === undefined ? null : { stage: reached, next_stage },
  };
}

/** The request that leads a visitor from the stage reached to the next one. */
function nextBestAction(reached: StageName, baseUrl: string): string {
  switch (reached) {
    case "discovery":
      return `Test a signed envelope with POST ${baseUrl}${SURFACES.selfTest.path}, connect, and check yourself with GET ${baseUrl}${SURFACES.checkOnline.path}{?agent_id} (a template, RFC 6570).`;
    case "connector_onboarding":
      return `Send a first message with POST ${baseUrl}${SURFACES.sendMessage.path}.`;
    case "message_delivery":
      return `Request a session with an online target: POST ${baseUrl}${SURFACES.requestSession.path}.`;
    case "session_negotiation":
      return `Report how it went with POST ${baseUrl}${SURFACES.submitFeedback.path}.`;
    case "feedback":
      return `Request the next session before the proof expires: POST ${baseUrl}${SURFACES.requestSession.path}.`;
  }
}

function overallAction(journeys: number, largest: JourneyDropOff | null, baseUrl: string): string {
  if (journeys === 0) return "No HTTP request was counted in this window yet: give an agent the address of the relay.";
  if (largest === null) return "Every journey completed the path: nothing to do.";
  return `${largest.count} of ${journeys} journeys stopped after ${largest.stage}. The next step there: ${nextBestAction(largest.stage, baseUrl)}`;
}
