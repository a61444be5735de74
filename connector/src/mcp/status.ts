import { z } from "zod";
import type { PendingSession as Pending } from "../types.ts";
import type { AgentConnection } from "./agent-connection.ts";
import { ConnectionState, connectionStateOf } from "./connection-state.ts";
import { PendingSession } from "./schemas.ts";
import type { Tool } from "./tool.ts";

/** A model asks for its status first, often before the process had time to connect. */
const FIRST_ATTEMPT_MS = 3000;

const StatusInput = z.strictObject({});
const StatusOutput = z.strictObject({
  agent_id: z.string(),
  connection: ConnectionState,
  waiting: z.number(),
  dropped: z.number(),
  /** Those that were undecided when this agent last came online; later ones come as messages. */
  pending_sessions: z.array(PendingSession),
});

export const myStatus: Tool<typeof StatusInput, typeof StatusOutput> = {
  name: "my_status",
  title: "My status",
  description:
    "Your agent id, your connection, how many messages wait, and undecided sessions that were requested before you came online: reject them, or have their requesters ask again: to approve what you did not receive counts for nothing. A closed connection stays closed: `reason` and `hint` tell what a person has to fix.",
  input: StatusInput,
  output: StatusOutput,
  annotations: { readOnlyHint: true, openWorldHint: false },
  async run(_, { connector, queue, requests }, { signal }) {
    await firstAttempt(connector, signal);
    return {
      agent_id: connector.agent,
      connection: connectionStateOf(connector.state),
      waiting: queue.size,
      dropped: queue.dropped,
      pending_sessions: requests.pending().map(pendingSession),
    };
  },
};

/** Resolves once the first attempt to connect has come to an end, at the latest after FIRST_ATTEMPT_MS. */
async function firstAttempt(connector: AgentConnection, signal: AbortSignal): Promise<void> {
  const isOver = () => connector.state.status !== "idle" && connector.state.status !== "connecting";
  if (isOver()) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const stop = connector.on("state", () => isOver() && resolve());
  const waited = AbortSignal.any([signal, AbortSignal.timeout(FIRST_ATTEMPT_MS)]);
  waited.addEventListener("abort", () => resolve());
  await promise;
  stop();
  signal.throwIfAborted();
}

function pendingSession({ sessionId, requester, createdAt, expiresAt }: Pending): z.infer<typeof PendingSession> {
  return {
    session_id: sessionId,
    requester,
    created_at_iso: createdAt.toISOString(),
    expires_at_iso: expiresAt.toISOString(),
  };
}
