import type { Connector } from "../connector.ts";
import type { ConnectorState, Delivery, Notice } from "../types.ts";
import type { Output } from "./command.ts";
import { jsonLine, printable, styled, type Voice } from "./output.ts";

/** A delivery as a line on stdout: of JSON, but for people at a terminal. */
export function deliveryLine(delivery: Delivery, output: Output, json: boolean): string {
  const { envelope, sessionId, verified, receivedAt, from, type, payload } = delivery;
  const time = new Date(receivedAt);
  if (json || !output.isTTY) {
    const session = sessionId !== undefined && { session_id: sessionId };
    return jsonLine({ event: "delivery", envelope, ...session, verified, received_at_iso: time.toISOString() });
  }
  const head = `${styled(output, "dim", time.toTimeString().slice(0, 8))} ${styled(output, "bold", printable(from))}`;
  const session = sessionId === undefined ? "" : ` ${printable(sessionId)}`;
  return `${head} ${printable(type)}${session} ${jsonLine(payload)} ${styled(output, "dim", `(${verified})`)}`;
}

/** Says on stderr what befalls the connection. Of the attempts of an outage, the first is enough for people. */
export function narrate(connector: Connector, websocketUrl: string, voice: Voice, json: boolean): void {
  let isAway = false;
  connector.on("state", (state) => {
    const isRepeat = isAway && state.status === "reconnecting";
    if (!isRepeat || json) sayState(connector.agent, state, websocketUrl, voice);
    isAway = state.status === "reconnecting";
  });
  connector.on("notice", (notice) => sayNotice(notice, voice));
  connector.on("error", ({ code, message, hint }) => voice.say("problem", `${message} ${hint}`, { code }, "yellow"));
  connector.on("overflow", ({ dropped }) =>
    voice.say("overflow", `Deliveries came faster than they were taken; ${dropped} are lost.`, { dropped }, "yellow"),
  );
}

function sayState(agent: string, state: ConnectorState, url: string, voice: Voice): void {
  if (state.status === "online") voice.say("online", `${agent} is online at ${url}`, { agent_id: agent }, "green");
  if (state.status !== "reconnecting") return;
  const { reason, retryInMs, closeCode } = state;
  const what = reason === "unreachable" ? `No relay answers at ${url}` : `The connection was lost (${closeCode})`;
  const fields = { reason, retry_in_ms: retryInMs, close_code: closeCode };
  voice.say("reconnecting", `${what}; trying again until it is back.`, fields, "yellow");
}

function sayNotice(notice: Notice, voice: Voice): void {
  if (notice.kind === "draining") voice.say("draining", "The relay restarts; moving to another connection.");
  if (notice.kind !== "pending_sessions" || notice.total === 0) return;
  const sessions = notice.sessions.map(({ sessionId, requester, createdAt, expiresAt }) => ({
    session_id: sessionId,
    requester,
    created_at_iso: isoOf(createdAt),
    expires_at_iso: isoOf(expiresAt),
  }));
  const ids = sessions.map(({ session_id, requester }) => `${session_id} of ${requester}`).join(", ");
  const words = `${notice.total} undecided: ${ids}. Approve or reject them.`;
  voice.say("pending_sessions", words, { total: notice.total, sessions }, "bold");
}

function isoOf(time: Date): string | null {
  return Number.isNaN(time.getTime()) ? null : time.toISOString();
}
