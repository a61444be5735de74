import { describe, expect, test } from "@jest/globals";
import { SessionNotices } from "../../src/cli/control/session-notices.ts";
import type { McpAgent } from "../../src/mcp/agent.ts";
import { DecidedSessions } from "../../src/mcp/decided-sessions.ts";
import { SessionRequests } from "../../src/mcp/session-requests.ts";
import { myStatus } from "../../src/mcp/status.ts";
import type { ToolCall } from "../../src/mcp/tool.ts";
import type { DecidedSession, Delivery, PendingSession } from "../../src/types.ts";

const NOW = new Date();

function decided(sessionId: string): DecidedSession {
  return { sessionId, target: "agent://bob", status: "approved", decidedAt: NOW };
}

function pending(sessionId: string): PendingSession {
  return { sessionId, requester: "agent://bob", createdAt: NOW, expiresAt: new Date(Date.now() + 60_000) };
}

describe("Decisions that the relay tells again", () => {
  test("are no news, however many came after them, of which the newest are kept", () => {
    const told = Array.from({ length: 500 }, (_, n) => decided(`ses_${n}`));
    const sessions = new DecidedSessions();
    expect(sessions.noticed(told)).toHaveLength(500);
    expect(sessions.noticed(told)).toEqual([]);
    expect(sessions.all()).toEqual(told.slice(-100));
  });
});

describe("A request that came here", () => {
  const delivery = { type: "session.request", sessionId: "ses_1", from: "agent://bob", payload: { purpose: "talk" } };
  const told = { ...pending("ses_1"), requester: "agent://mallory" };

  test("is of whom signed it, whatever notices say before and after, and however many they are", () => {
    const requests = new SessionRequests();
    requests.noticed([told]);
    requests.received({ ...delivery, receivedAt: Date.now() } as unknown as Delivery);
    requests.noticed([told, ...Array.from({ length: 1000 }, (_, n) => pending(`ses_0${n}`)), told]);
    expect(requests.find("ses_1")).toMatchObject({ requester: "agent://bob", purpose: "talk", isReceived: true });
    expect(requests.pending().filter(({ requester }) => requester === "agent://mallory")).toEqual([]);
  });

  test("is told so to who shares the connection later, for whom no later notice changes it", () => {
    const notices = new SessionNotices();
    notices.received({ ...delivery, receivedAt: Date.now() } as unknown as Delivery);
    const made = Array.from({ length: 100 }, (_, n) => pending(`ses_0${n}`));
    notices.noticed({ kind: "pending_sessions", total: 101, sessions: [told, ...made] });
    const requests = new SessionRequests();
    for (const notice of notices.all()) if (notice.kind === "pending_sessions") requests.noticed(notice.sessions);
    expect(requests.pending()).toHaveLength(100);
    requests.noticed([told]);
    expect(requests.find("ses_1")).toMatchObject({ requester: "agent://bob" });
  });
});

describe("A request that was decided here", () => {
  test("is not pending again for a notice that left the relay before it knew", () => {
    const requests = new SessionRequests();
    requests.noticed([pending("ses_1"), pending("ses_2")]);
    const delivery = { canDeliverRealtime: true, status: "online" } as const;
    const ack = { envelopeId: "e", duplicate: false, delivery, to: "agent://bob" };
    requests.decided({ ...ack, sessionId: "ses_1", status: "approved" });
    requests.noticed([pending("ses_1"), pending("ses_2")]);
    expect(requests.pending().map(({ sessionId }) => sessionId)).toEqual(["ses_2"]);
  });
});

test("A call of my_status that was cancelled before it began ends at once", async () => {
  const connector = { state: { status: "idle" }, on: () => () => {} };
  const call = { signal: AbortSignal.abort() } as ToolCall;
  await expect(myStatus.run({}, { connector } as unknown as McpAgent, call)).rejects.toThrow("aborted");
});
