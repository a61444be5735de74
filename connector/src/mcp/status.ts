import { z } from "zod";
import { RelayError } from "../errors.ts";
import { pause } from "../pause.ts";
import type { ConnectorState } from "../types.ts";
import type { AgentConnection, McpAgent } from "./agent.ts";
import { DecidedResult, decidedResult, type SessionRequest, sessionState } from "./known-sessions.ts";
import { AgentId, PendingSession } from "./schemas.ts";
import { ConnectionState, connectionStateOf, type Tool, UNTRUSTED_NOTE } from "./tool.ts";

/** A model asks for its status first, often before the process had time to connect. */
const FIRST_ATTEMPT_MS = 3000;
const LOOKED_UP_WITHIN_MS = 3000;

const StatusInput = z.strictObject({});
const StatusOutput = z.strictObject({
  agent_id: z.string(),
  connection: ConnectionState,
  waiting: z.number(),
  dropped: z.number(),
  /** Undecided as far as is known. */
  pending_sessions: z.array(PendingSession),
  /** The newest decisions on sessions that this agent requested. */
  decided_sessions: z.array(DecidedResult),
});

export const myStatus: Tool<typeof StatusInput, typeof StatusOutput> = {
  name: "my_status",
  title: "My status",
  description:
    "Your agent id, connection, how many messages wait, the sessions that you have yet to decide, and those of yours that were decided. received false: it came while you were offline: reject it, or have its requester request again. A closed connection is tried again by each call, once a person has done what `hint` says.",
  input: StatusInput,
  output: StatusOutput,
  annotations: { readOnlyHint: true, openWorldHint: false },
  async run(_, agent, { signal }) {
    const { connector, queue } = agent;
    await firstAttempt(connector, signal);
    return {
      agent_id: connector.agent,
      connection: connectionStateOf(agent),
      waiting: queue.size,
      dropped: queue.dropped,
      pending_sessions: (await undecided(agent, signal)).map(pendingSession),
      decided_sessions: agent.decisions.all().map(decidedResult),
    };
  },
  preface: ({ pending_sessions: sessions }) =>
    sessions.some(({ purpose }) => purpose !== undefined) ? UNTRUSTED_NOTE : undefined,
};

/** What other processes decided, and whether what came while the agent was away was received, only the relay knows. */
async function undecided({ connector, requests, sessionOf }: McpAgent, signal: AbortSignal) {
  const asked = connector.state.status === "online" ? requests.toLookUp() : [];
  const inTime = AbortSignal.any([signal, AbortSignal.timeout(LOOKED_UP_WITHIN_MS)]);
  const looks = asked.map(async ({ sessionId }) =>
    requests.found(sessionId, await sessionState(sessionOf, sessionId, inTime)),
  );
  await Promise.allSettled(looks);
  signal.throwIfAborted();
  return requests.pending();
}

/** Resolves once the first attempt to connect has come to an end, and it is known which, at the latest after FIRST_ATTEMPT_MS. */
async function firstAttempt(connector: AgentConnection, signal: AbortSignal): Promise<void> {
  const isOver = () => hasEnded(connector.state);
  if (isOver()) return;
  const over = new AbortController();
  const stop = connector.on("state", () => isOver() && over.abort());
  await pause(FIRST_ATTEMPT_MS, AbortSignal.any([signal, over.signal]));
  stop();
  signal.throwIfAborted();
}

function hasEnded(state: ConnectorState): boolean {
  if (state.status !== "reconnecting") return state.status === "online" || state.status === "closed";
  return state.reason === "lost" || state.error !== undefined;
}

function pendingSession(request: SessionRequest): z.infer<typeof PendingSession> {
  const { sessionId, requester, purpose, isReceived, createdAt, expiresAt } = request;
  return {
    session_id: sessionId,
    requester,
    ...(purpose !== undefined && { purpose }),
    ...(isReceived !== undefined && { received: isReceived }),
    created_at_iso: createdAt.toISOString(),
    expires_at_iso: expiresAt.toISOString(),
  };
}

const PresenceInput = z.strictObject({ agent_id: AgentId });

/**
 * The part of the relay's answer that is about the agent. The relay's advice is left out: it speaks to that agent's
 * operator. Source: docs/protocol.md#presence.
 */
const Presence = z.object({
  agent_id: z.string(),
  status: z.enum(["online", "stale", "offline", "not_seen"]),
  can_deliver_realtime: z.boolean(),
  reason: z.literal("congested").optional(),
  /** Since its last signed heartbeat. */
  stale_ms: z.number().nullable(),
  last_seen_iso: z.string().nullable(),
  severity: z.enum(["ok", "stale", "critical_stale", "offline"]).nullable(),
});
const PresenceOutput = z.object({ ...Presence.shape, next_action: z.string().describe("For you.") });

export const checkPresence: Tool<typeof PresenceInput, typeof PresenceOutput> = {
  name: "check_presence",
  title: "Check presence",
  description:
    "Whether an agent is online, and what to do. Only an agent that is online receives messages. There is no list of agents.",
  input: PresenceInput,
  output: PresenceOutput,
  annotations: { readOnlyHint: true },
  isWithoutConnection: true,
  async run({ agent_id }, { presenceOf }, { signal }) {
    const presence = Presence.safeParse(await presenceOf(agent_id, signal));
    if (!presence.success) throw new RelayError("refused");
    return { ...presence.data, next_action: adviceTo(presence.data) };
  },
};

const AWAY =
  "Your message would not arrive, and only its operator can bring it back. Wait with wait_online_seconds, or try again later.";

/** What whoever asks can do. */
function adviceTo({ status, can_deliver_realtime, reason }: z.infer<typeof Presence>): string {
  if (can_deliver_realtime) return "Send now: it receives messages. The result of the send tells whether it did.";
  if (reason === "congested")
    return "It is online, but reads too slowly to be sent anything now: try again in a few seconds.";
  if (status === "not_seen") return `It has not been there lately: check the id with your user. ${AWAY}`;
  return AWAY;
}
