import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "protocol/contract/limits.ts";
import { PENDING } from "protocol/contract/session.ts";
import { readSession } from "../src/sessions.ts";
import { decisionOf, delivery, envelopeOf, messageOf, requestOf, textOf } from "./envelopes.ts";
import { Bench, ClockedLink, type Pod } from "./kit.ts";

const MINUTE = 60_000;
const bench = new Bench();
let link: ClockedLink;
let pod: Pod;

const read = (sessionId: string | null) => readSession(link, pod.window, sessionId as string);
const statusOf = async (sessionId: string | null) => (await read(sessionId))?.status;

beforeEach(async () => {
  await bench.open();
  link = await ClockedLink.of(bench);
  pod = await bench.pod({ link, pod: "pod-a" });
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

describe("a session request", () => {
  test("opens a session that pends for its ttl, with ids, times and states and nothing else", async () => {
    const { sessionId, sessionStatus, acceptedAt } = await pod.request("agent://alice", "agent://bob", 5);
    expect({ sessionStatus, acceptedAt }).toEqual({ sessionStatus: PENDING, acceptedAt: link.at });
    expect(await read(sessionId)).toEqual({
      sessionId,
      status: PENDING,
      requester: "agent://alice",
      target: "agent://bob",
      createdAt: link.at,
      expiresAt: link.at + 5 * MINUTE,
      decidedAt: null,
      delivery: "not_seen",
    });
    const kept = await bench.client.get((await bench.keys()).session(sessionId as string));
    expect(kept).toBe(`p n ${link.at} 5 alice bob`);
  });

  test("that names no ttl pends for an hour", async () => {
    const request = { ...requestOf("agent://alice", "agent://bob"), payload: { purpose: "talk" } };
    const { sessionId } = delivery(await pod.accept(request));
    expect((await read(sessionId))?.expiresAt).toBe(link.at + 60 * MINUTE);
  });

  test("to an online target is delivered with its session id", async () => {
    const ear = await bench.ear("pod-a");
    await bench.seed("agent://bob", "pod-a c1 7", link.at);
    const request = requestOf("agent://alice", "agent://bob");
    const { sessionId, delivery: status } = delivery(await pod.accept(request));
    expect(status).toBe("online");
    expect(await ear.lines()).toEqual([`deliver c1 7 agent://bob ${sessionId} ${textOf(request)}`]);
    expect((await read(sessionId))?.delivery).toBe("online");
  });

  test("to an offline target has the delivery status stale", async () => {
    await bench.seed("agent://bob", "pod-a c1 7", link.at - 3_600_000);
    const { sessionId, delivery: status } = await pod.request("agent://alice", "agent://bob");
    expect(status).toBe("stale");
    expect((await read(sessionId))?.delivery).toBe("stale");
  });

  test("is expired from its ttl on, and forgotten one hour later", async () => {
    const { sessionId } = await pod.request("agent://alice", "agent://bob", 5);
    link.at += 5 * MINUTE - 1;
    expect(await statusOf(sessionId)).toBe(PENDING);
    link.at += 1;
    expect(await statusOf(sessionId)).toBe("expired");
    const forgottenAt = await bench.client.pexpiretime((await bench.keys()).session(sessionId as string));
    expect(forgottenAt).toBe(link.at + SESSION_LIMITS.keepAfterEndMs);
  });

  test("sent again names the same session with its present status, in its own batch, later and once expired", async () => {
    const request = requestOf("agent://alice", "agent://bob", 5);
    const [first, repeat] = (await pod.acceptAll(request, request)).map(delivery);
    expect(first).toMatchObject({ outcome: "accepted", sessionStatus: PENDING });
    expect(repeat).toEqual({ ...first, outcome: "duplicate" });
    link.at += MINUTE;
    expect(await pod.accept(request)).toEqual({ ...first, outcome: "duplicate" });
    link.at += 4 * MINUTE;
    expect(await pod.accept(request)).toEqual({ ...first, outcome: "duplicate", sessionStatus: "expired" });
  });

  test("sent again after the decision names what was decided", async () => {
    const request = requestOf("agent://alice", "agent://bob");
    const { sessionId } = delivery(await pod.accept(request));
    await pod.take(decisionOf("reject", "agent://bob", "agent://alice", sessionId as string));
    expect(await pod.accept(request)).toMatchObject({ outcome: "duplicate", sessionId, sessionStatus: "rejected" });
  });
});

describe("the sessions that pend on one target", () => {
  test("are kept until the last of them expires, and no longer once they are decided", async () => {
    const key = (await bench.keys()).asked("agent://bob");
    const first = await pod.request("agent://alice", "agent://bob", 60);
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 60 * MINUTE);
    await pod.request("agent://alice", "agent://bob", 5);
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 60 * MINUTE);
    const last = await pod.request("agent://alice", "agent://bob", 120);
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 120 * MINUTE);
    await pod.take(decisionOf("approve", "agent://bob", "agent://alice", last.sessionId as string));
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 60 * MINUTE);
    await pod.take(decisionOf("approve", "agent://bob", "agent://alice", first.sessionId as string));
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 5 * MINUTE);
  });

  test("come with an acceptance only while undecided and unexpired", async () => {
    const ids = [];
    for (const ttl of [5, 60, 60]) ids.push((await pod.request("agent://alice", "agent://bob", ttl)).sessionId);
    const [expired, decided, pending] = ids as [string, string, string];
    link.at += 5 * MINUTE;
    await pod.take(decisionOf("approve", "agent://bob", "agent://alice", decided, { ts: link.at }));
    const registered = await pod.register("agent://bob");
    expect(registered.pending.map(({ sessionId }) => sessionId)).toEqual([pending]);
    expect(await statusOf(expired)).toBe("expired");
  });

  test("are told to a target that registers in the very batch that its request came in", async () => {
    const request = requestOf("agent://alice", "agent://bob");
    const [asked, registered] = await pod.acceptAll(request, envelopeOf("agent.register", "agent://bob"));
    expect(asked).toMatchObject({ outcome: "accepted", delivery: "not_seen" });
    expect(registered).toMatchObject({ pending: [{ requester: "agent://alice" }] });
  });

  test("are told again to a connection that was silent until its agent was stale", async () => {
    await bench.ear("pod-a");
    await pod.register("agent://bob");
    link.at += PRESENCE_LIMITS.staleAfterMs + 1;
    const { sessionId, delivery: status } = await pod.request("agent://alice", "agent://bob");
    expect(status).toBe("stale");
    expect(await pod.heartbeat("agent://bob")).toMatchObject({ pending: [{ sessionId }] });
    expect(await pod.heartbeat("agent://bob")).toMatchObject({ pending: [] });
  });
});

test("a target that takes part in no session pays nothing for those of others", async () => {
  await pod.request("agent://alice", "agent://bob");
  expect(await pod.accept(messageOf("agent://alice", "agent://carol"))).toMatchObject({ sessionStatus: null });
  expect((await pod.register("agent://carol")).pending).toEqual([]);
});
