import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { SESSION_LIMITS } from "protocol/contract/limits.ts";
import { PENDING } from "protocol/contract/session.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { readSession } from "../src/sessions.ts";
import { ClockedLink } from "./clocked-link.ts";
import { decisionOf, delivery, messageOf, requestOf, textOf } from "./envelopes.ts";
import { Bench, type Pod } from "./kit.ts";

const MINUTE = 60_000;
const bench = new Bench();
let link: ClockedLink;
let pod: Pod;

const read = (sessionId: string | null) => readSession(link, sessionId as string, 1);
const pendingOf = (agent: string) => bench.client.zrange(partitionKeys.pending(0, agent), "0", "-1");
const statusOf = async (sessionId: string | null) => (await read(sessionId))?.status;

beforeEach(async () => {
  await bench.open();
  link = new ClockedLink(bench);
  await link.start();
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
    const kept = await bench.client.hgetall(partitionKeys.session(0, sessionId as string));
    const fields = ["created_at", "delivery", "expires_at", "id", "requester", "status", "target"];
    expect(Object.keys(kept).sort()).toEqual(fields);
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
    const forgottenAt = await bench.client.pexpiretime(partitionKeys.session(0, sessionId as string));
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
    await pod.decide(decisionOf("reject", "agent://bob", "agent://alice", sessionId as string));
    expect(await pod.accept(request)).toMatchObject({ outcome: "duplicate", sessionId, sessionStatus: "rejected" });
  });
});

describe("the sessions that pend on one target", () => {
  const fill = async (minutes: (index: number) => number, count: number = SESSION_LIMITS.maxPendingPerTarget) => {
    const requests = Array.from({ length: count }, (_, n) => requestOf("agent://alice", "agent://bob", minutes(n)));
    return (await pod.acceptAll(...requests)).map((outcome) => delivery(outcome).sessionId as string);
  };

  test("are at most 100: the oldest gives way, expired, however long it still had", async () => {
    const sessions = await fill((n) => (n === 0 ? 1440 : 60 - (n % 50)));
    const added = await pod.request("agent://carol", "agent://bob", 5);
    const pending = await pendingOf("agent://bob");
    expect(pending.map((member) => member.split(" ")[0])).toEqual([...sessions.slice(1), added.sessionId]);
    expect(await statusOf(sessions[0] as string)).toBe("expired");
    expect(await statusOf(sessions[1] as string)).toBe(PENDING);
    const late = decisionOf("approve", "agent://bob", "agent://alice", sessions[0] as string);
    expect(await pod.decide(late)).toEqual({ outcome: "session_closed" });
  });

  test("name the one that gave way expired when its request comes again", async () => {
    const request = requestOf("agent://alice", "agent://bob");
    const { sessionId } = delivery(await pod.accept(request));
    await fill(() => 60);
    expect(await pod.accept(request)).toMatchObject({ outcome: "duplicate", sessionId, sessionStatus: "expired" });
  });

  test("lose the expired ones before the oldest", async () => {
    const sessions = await fill((n) => (n === 50 ? 5 : 60));
    link.at += 5 * MINUTE;
    await pod.request("agent://carol", "agent://bob");
    expect(await pendingOf("agent://bob")).toHaveLength(SESSION_LIMITS.maxPendingPerTarget);
    expect(await statusOf(sessions[0] as string)).toBe(PENDING);
    expect(await statusOf(sessions[50] as string)).toBe("expired");
  });

  test("do not count against another target", async () => {
    const sessions = await fill(() => 60);
    await pod.request("agent://alice", "agent://carol");
    expect(await statusOf(sessions[0] as string)).toBe(PENDING);
  });

  test("are kept until the last of them expires", async () => {
    const key = partitionKeys.pending(0, "agent://bob");
    await pod.request("agent://alice", "agent://bob", 60);
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 60 * MINUTE);
    await pod.request("agent://alice", "agent://bob", 5);
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 60 * MINUTE);
    await pod.request("agent://alice", "agent://bob", 120);
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 120 * MINUTE);
  });

  test("come with an acceptance only while undecided and unexpired", async () => {
    const [expired, decided, pending] = await fill((n) => (n === 0 ? 5 : 60), 3);
    link.at += 5 * MINUTE;
    await pod.decide(decisionOf("approve", "agent://bob", "agent://alice", decided as string, { ts: link.at }));
    const registered = await pod.register("agent://bob");
    expect(registered.pending.map(({ sessionId }) => sessionId)).toEqual([pending]);
    expect(await statusOf(expired as string)).toBe("expired");
  });
});

test("a target that takes part in no session pays nothing for those of others", async () => {
  await pod.request("agent://alice", "agent://bob");
  expect(await pod.accept(messageOf("agent://alice", "agent://carol"))).toMatchObject({ sessionStatus: null });
  expect((await pod.register("agent://carol")).pending).toEqual([]);
});
