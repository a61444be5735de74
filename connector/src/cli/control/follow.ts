import type { Connector } from "../../connector.ts";
import { membersOf, textOf } from "../../frames.ts";
import { type ReplySend, withReply } from "../../replies.ts";
import type { ConnectorState, Delivery, Envelope, JsonObject, Notice, PendingSession } from "../../types.ts";
import { deliveryMembers } from "../delivery-line.ts";
import { jsonLine } from "../output.ts";

/**
 * How one process tells another of the same user what comes over the agent's connection: JSON lines of its control socket,
 * after a line {"follow":true}. Both ends are of this package.
 */

export type PendingNotice = Extract<Notice, { kind: "pending_sessions" }>;

/** Writes what comes from now on. @returns a function that ends it. */
export function tellFollower(connector: Connector, write: (line: string) => void): () => void {
  const ends = [
    connector.on("state", (state) => write(stateLine(state))),
    connector.on("delivery", (delivery) => write(jsonLine({ event: "delivery", ...deliveryMembers(delivery) }))),
    connector.on("notice", (notice) => notice.kind === "pending_sessions" && write(pendingLine(notice))),
  ];
  return () => {
    for (const end of ends) end();
  };
}

/**
 * The state of a connection that ended for good stays with its process: whoever follows then connects by itself. So do errors,
 * which its process reports.
 */
export function stateLine(state: ConnectorState): string {
  if (state.status === "closed") return jsonLine({ event: "state", state: { status: "connecting" } });
  return jsonLine({ event: "state", state: { ...state, error: undefined } });
}

export function pendingLine({ total, sessions }: PendingNotice): string {
  return jsonLine({ event: "pending_sessions", total, sessions });
}

export function pendingOf({ total, sessions }: JsonObject): PendingNotice {
  const dated = (Array.isArray(sessions) ? (sessions as PendingSession[]) : []).map(
    ({ createdAt, expiresAt, ...session }) => ({
      ...session,
      createdAt: new Date(createdAt),
      expiresAt: new Date(expiresAt),
    }),
  );
  return { kind: "pending_sessions", total: total as number, sessions: dated };
}

/** @param members those of deliveryMembers. @param send what its reply goes out by. */
export function deliveryOf(members: JsonObject, send: ReplySend): Delivery {
  const envelope = membersOf(members.envelope) as unknown as Envelope;
  const { from, type, payload } = envelope;
  const [sessionId, issuer] = [textOf(members.session_id), textOf(members.issuer)];
  const received = {
    envelope,
    from,
    type,
    payload,
    verified: members.verified as Delivery["verified"],
    ...(sessionId !== undefined && { sessionId }),
    ...(issuer !== undefined && { issuer }),
    ...(members.sealed === true && { sealed: true as const }),
    receivedAt: Date.parse(String(members.received_at_iso)),
  };
  return withReply(received, send);
}
