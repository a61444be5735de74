import { z } from "zod";
import type { PendingSession as Pending } from "../types.ts";
import { ConnectionState, connectionStateOf } from "./connection-state.ts";
import { PendingSession } from "./schemas.ts";
import type { Tool } from "./tool.ts";

const StatusInput = z.strictObject({});
const StatusOutput = z.strictObject({
  agent_id: z.string().describe("This agent's own id: what others send to."),
  connection: ConnectionState,
  waiting: z.int().describe("Messages that wait for wait_for_messages."),
  dropped: z.int().describe("Messages dropped since the last wait_for_messages."),
  pending_sessions: z
    .array(PendingSession)
    .describe("Sessions that were undecided when this agent last came online. Later ones come as messages."),
});

export const myStatus: Tool<typeof StatusInput, typeof StatusOutput> = {
  name: "my_status",
  title: "My status",
  description: `Returns which agent you are on the relay, whether you are connected, how many messages wait, and which sessions others requested while you were offline (ids and times only; approve_session and reject_session decide them).
A connection that is closed stays closed: \`reason\` and \`hint\` tell what a person has to fix, such as a key that the relay refused.`,
  input: StatusInput,
  output: StatusOutput,
  annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  async run(_, agent) {
    const { connector, queue } = agent;
    return {
      agent_id: connector.agent,
      connection: connectionStateOf(connector.state),
      waiting: queue.size,
      dropped: queue.dropped,
      pending_sessions: agent.pendingSessions().map(pendingSession),
    };
  },
};

function pendingSession({ sessionId, requester, createdAt, expiresAt }: Pending): z.infer<typeof PendingSession> {
  return {
    session_id: sessionId,
    requester,
    created_at_iso: createdAt.toISOString(),
    expires_at_iso: expiresAt.toISOString(),
  };
}
