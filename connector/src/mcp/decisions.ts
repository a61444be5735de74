import { RelayError } from "../errors.ts";
import { PENDING } from "../session-status.ts";
import type { AcceptedSession } from "../types.ts";
import type { McpAgent } from "./agent.ts";
import { reach } from "./reach.ts";
import type { SentDecision } from "./session-requests.ts";
import { type SessionState, sessionState } from "./session-state.ts";
import { ToolRefusal } from "./tool-errors.ts";

/** What this agent decides on a session that was requested of it. */
interface Decision {
  readonly sessionId: string;
  readonly verdict: "approved" | "rejected";
  /** Sends it to the requester. */
  readonly send: (requester: string, options: { signal: AbortSignal }) => Promise<AcceptedSession>;
}

/**
 * Decides a session, once. An approval goes out only where this agent got the request: another would be accepted, and counts for
 * nothing. @throws {RelayError | ToolRefusal} `request_not_received`, `not_your_session`, `session_closed` with what it is.
 */
export async function decide(agent: McpAgent, decision: Decision, signal: AbortSignal): Promise<SentDecision> {
  const { sessionId, verdict, send } = decision;
  const { connector, requests } = agent;
  const former = requests.decisionOn(sessionId, verdict);
  if (former !== undefined) return former;
  const requester = await requesterOf(agent, decision, signal);
  try {
    const accepted = await reach(connector, signal, (options) => send(requester, options));
    const sent = { ...accepted, to: requester };
    requests.decided(sent);
    return sent;
  } catch (error) {
    if (!(error instanceof Error && "code" in error && error.code === "session_closed")) throw error;
    // It says only that somebody was first.
    const state = await sessionState(agent.sessionOf, sessionId, signal).catch(() => undefined);
    if (state === undefined || state.status === PENDING) throw error;
    requests.found(sessionId, state);
    throw closed(agent, decision, state);
  }
}

async function requesterOf(agent: McpAgent, decision: Decision, signal: AbortSignal): Promise<string> {
  const { connector, requests, sessionOf } = agent;
  const { sessionId, verdict } = decision;
  const known = requests.find(sessionId);
  if (known !== undefined && (known.isReceived === true || verdict === "rejected")) return known.requester;
  const state = await sessionState(sessionOf, sessionId, signal);
  requests.found(sessionId, state);
  if (state.target !== connector.agent) throw notYours(connector.agent, state);
  if (state.status !== PENDING) throw closed(agent, decision, state);
  if (verdict === "approved" && !state.isReceived) throw notReceived(state);
  return state.requester;
}

function notReceived({ requester }: SessionState): ToolRefusal {
  return new ToolRefusal("request_not_received", {
    message: "You did not receive this request, since you were not online: to approve it would count for nothing.",
    hint: `Ask ${requester} by send_message to request again while you are online: the new request comes as a message, and can be approved. reject_session ends this one.`,
  });
}

function notYours(agent: string, { requester, target }: SessionState): RelayError {
  if (requester !== agent) return new RelayError("not_your_session", { hint: "Only its target decides it." });
  return new RelayError("not_your_session", {
    message: "You requested this session yourself: only its target decides it.",
    hint: `Wait for the decision of ${target}, which comes through wait_for_messages.`,
  });
}

function closed({ connector, requests }: McpAgent, decision: Decision, state: SessionState): RelayError {
  const { sessionId, verdict } = decision;
  const { status, decidedAt, requester } = state;
  const another = `${requester} may request a new session.`;
  if (status === "expired") {
    return new RelayError("session_closed", { message: "The session has expired: nobody decided it.", hint: another });
  }
  const who = requests.isDecidedHere(sessionId) ? "by you" : "through another process of your agent, or a former one";
  const message = `The session was ${status} before by ${connector.agent}, ${who}, at ${decidedAt}.`;
  const hint = status === verdict ? "Nothing is left to do." : `That is for good. ${another}`;
  return new RelayError("session_closed", { message, hint });
}
