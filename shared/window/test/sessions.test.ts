import { beforeEach, describe, expect, test } from "@jest/globals";
import { PENDING } from "relay-protocol/contract/session.ts";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { readSession, readTarget } from "../src/sessions/look-ups.ts";
import { ALICE, BOB, CAROL, decisionOf, delivery, envelopeOf, messageOf, requestOf, textOf } from "./envelopes.ts";
import { ClockedLink, type Pod, redisBench } from "./kit.ts";

const bench = redisBench();
let link: ClockedLink;
let pod: Pod;

const MINUTE = 60_000;
const read = (sessionId: string | null) => readSession(link, pod.window, sessionId as string);
const statusOf = async (sessionId: string | null) => (await read(sessionId))?.status;

beforeEach(async () => {
  link = await ClockedLink.of(bench);
  pod = await bench.pod({ link, pod: "pod-a" });
});

describe("a session request", () => {
  test("opens a session that pends for its ttl, with ids, times and states and nothing else", async () => {
    const { sessionId, sessionStatus, acceptedAt } = await pod.request(ALICE, BOB, 5);
    expect({ sessionStatus, acceptedAt }).toEqual({ sessionStatus: PENDING, acceptedAt: link.at });
    expect(await read(sessionId)).toEqual({
      sessionId,
      status: PENDING,
      requester: ALICE,
      target: BOB,
      createdAt: link.at,
      expiresAt: link.at + 5 * MINUTE,
      decidedAt: null,
      delivery: "not_seen",
    });
    const kept = await bench.client.get((await bench.keys()).session(sessionId as string));
    expect(kept).toBe(`p n ${link.at} 5 alice bob`);
  });

  test("that names no ttl pends for an hour", async () => {
    const request = { ...requestOf(ALICE, BOB), payload: { purpose: "talk" } };
    const { sessionId } = delivery(await pod.accept(request));
    expect((await read(sessionId))?.expiresAt).toBe(link.at + 60 * MINUTE);
  });

  test("to an online target is delivered with its session id", async () => {
    const ear = await bench.ear("pod-a");
    await bench.seed(BOB, "pod-a c1 7", link.at);
    const request = requestOf(ALICE, BOB);
    const { sessionId, delivery: status } = delivery(await pod.accept(request));
    expect(status).toBe("online");
    expect(await ear.lines()).toEqual([`deliver c1 7 agent://bob ${sessionId} ${textOf(request)}`]);
    expect((await read(sessionId))?.delivery).toBe("online");
  });

  test("to an offline target has the delivery status stale", async () => {
    await bench.seed(BOB, "pod-a c1 7", link.at - 3_600_000);
    const { sessionId, delivery: status } = await pod.request(ALICE, BOB);
    expect(status).toBe("stale");
    expect((await read(sessionId))?.delivery).toBe("stale");
  });

  test("is expired from its ttl on, and forgotten one hour later", async () => {
    const { sessionId } = await pod.request(ALICE, BOB, 5);
    link.at += 5 * MINUTE - 1;
    expect(await statusOf(sessionId)).toBe(PENDING);
    link.at += 1;
    expect(await statusOf(sessionId)).toBe("expired");
    const forgottenAt = await bench.client.pexpiretime((await bench.keys()).session(sessionId as string));
    expect(forgottenAt).toBe(link.at + SESSION_LIMITS.keepAfterEndMs);
  });

  test("sent again names the same session with its present status, in its own batch, later and once expired", async () => {
    const request = requestOf(ALICE, BOB, 5);
    const [first, repeat] = (await pod.acceptAll(request, request)).map(delivery);
    expect(first).toMatchObject({ outcome: "accepted", sessionStatus: PENDING });
    expect(repeat).toEqual({ ...first, outcome: "duplicate" });
    link.at += MINUTE;
    expect(await pod.accept(request)).toEqual({ ...first, outcome: "duplicate" });
    link.at += 4 * MINUTE;
    expect(await pod.accept(request)).toEqual({ ...first, outcome: "duplicate", sessionStatus: "expired" });
  });

  test("sent again after the decision names what was decided", async () => {
    const request = requestOf(ALICE, BOB);
    const { sessionId } = delivery(await pod.accept(request));
    await pod.take(decisionOf("reject", BOB, ALICE, sessionId as string));
    expect(await pod.accept(request)).toMatchObject({ outcome: "duplicate", sessionId, sessionStatus: "rejected" });
  });
});

describe("the sessions that pend on one target", () => {
  test("are kept until the last of them expires, and no longer once they are decided", async () => {
    const key = (await bench.keys()).pending(BOB);
    const first = await pod.request(ALICE, BOB, 60);
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 60 * MINUTE);
    await pod.request(ALICE, BOB, 5);
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 60 * MINUTE);
    const last = await pod.request(ALICE, BOB, 120);
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 120 * MINUTE);
    await pod.take(decisionOf("approve", BOB, ALICE, last.sessionId as string));
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 60 * MINUTE);
    await pod.take(decisionOf("approve", BOB, ALICE, first.sessionId as string));
    expect(await bench.client.pexpiretime(key)).toBe(link.at + 5 * MINUTE);
  });

  test("come with an acceptance only while undecided and unexpired", async () => {
    const ids = [];
    for (const ttl of [5, 60, 60]) ids.push((await pod.request(ALICE, BOB, ttl)).sessionId);
    const [expired, decided, pending] = ids as [string, string, string];
    link.at += 5 * MINUTE;
    await pod.take(decisionOf("approve", BOB, ALICE, decided, { ts: link.at }));
    const registered = await pod.register(BOB);
    expect(registered.pending.map(({ sessionId }) => sessionId)).toEqual([pending]);
    expect(await statusOf(expired)).toBe("expired");
  });

  test("are told to a target that registers in the very batch that its request came in", async () => {
    const request = requestOf(ALICE, BOB);
    const [asked, registered] = await pod.acceptAll(request, envelopeOf("agent.register", BOB));
    expect(asked).toMatchObject({ outcome: "accepted", delivery: "not_seen" });
    expect(registered).toMatchObject({ pending: [{ requester: ALICE }] });
  });

  test("are told again to a connection that was silent until its agent was stale", async () => {
    await bench.ear("pod-a");
    await pod.register(BOB);
    link.at += PRESENCE_LIMITS.staleAfterMs + 1;
    const { sessionId, delivery: status } = await pod.request(ALICE, BOB);
    expect(status).toBe("stale");
    expect(await pod.heartbeat(BOB)).toMatchObject({ pending: [{ sessionId }] });
    expect(await pod.heartbeat(BOB)).toMatchObject({ pending: [] });
  });
});

test("a target that takes part in no session pays nothing for those of others", async () => {
  await pod.request(ALICE, BOB);
  expect(await pod.accept(messageOf(ALICE, CAROL))).toMatchObject({ sessionStatus: null });
  expect((await pod.register(CAROL)).pending).toEqual([]);
});

describe("what is told of a target:", () => {
  const { offlineAfterMs } = PRESENCE_LIMITS;
  const { proofFreshnessMs } = SESSION_LIMITS;
  const read = (agent: string, sessionId: string | null = null) =>
    readTarget(link, pod.window, { agent, sessionId }, { offlineAfterMs, proofFreshnessMs });

  beforeEach(() => bench.ear("pod-a"));

  test("an agent that nobody saw and nobody asked has nothing of its own, whatever others have", async () => {
    await pod.register(BOB);
    await pod.request(ALICE, BOB);
    expect(await read(CAROL)).toEqual({
      agent: CAROL,
      presence: expect.objectContaining({ status: "not_seen", lastSeen: null }),
      lastOnlineProof: null,
      lastRequestAt: null,
      session: null,
    });
  });

  describe("the proof of a target", () => {
    test("is its last request that was accepted while it was online, whoever requested", async () => {
      await pod.register(BOB);
      await pod.request(ALICE, BOB);
      link.at += 1000;
      const { sessionId } = await pod.request(CAROL, BOB, 60, { origin: "gateway" });
      expect(await read(BOB)).toMatchObject({
        presence: { status: "online", staleMs: 1000 },
        lastOnlineProof: { sessionId, requester: CAROL, target: BOB, acceptedAt: link.at, targetStatus: "online" },
        lastRequestAt: link.at,
      });
    });

    test("is also a request between agents of one principal, and tells that it is", async () => {
      await pod.register(BOB);
      const { sessionId } = await pod.request(ALICE, BOB, 60, { isWithinPrincipal: true });
      expect((await read(BOB)).lastOnlineProof).toMatchObject({ sessionId, samePrincipal: true });
      await pod.request(ALICE, BOB);
      expect((await read(BOB)).lastOnlineProof).toMatchObject({ samePrincipal: false });
    });

    test("is pushed out by no request to others, however many", async () => {
      await pod.register(BOB);
      const { sessionId } = await pod.request(ALICE, BOB);
      await pod.register(CAROL);
      for (let n = 0; n <= SESSION_LIMITS.retainedProofs; n += 1) await pod.request(ALICE, CAROL);
      expect((await read(BOB)).lastOnlineProof?.sessionId).toBe(sessionId);
    });

    test("stays when a later request finds it away, and that one is told as its last request", async () => {
      await pod.register(BOB);
      const { sessionId } = await pod.request(ALICE, BOB);
      link.at += PRESENCE_LIMITS.staleAfterMs + 1;
      expect((await pod.request(ALICE, BOB)).delivery).toBe("stale");
      expect(await read(BOB)).toMatchObject({ lastOnlineProof: { sessionId }, lastRequestAt: link.at });
    });

    test("is not made for a target that was not online", async () => {
      await pod.request(ALICE, BOB);
      expect(await read(BOB)).toMatchObject({ lastOnlineProof: null, lastRequestAt: link.at });
    });

    test("is kept for as long as it is fresh", async () => {
      await pod.register(BOB);
      await pod.request(ALICE, BOB);
      const acceptedAt = link.at;
      expect(await bench.client.pexpiretime((await bench.keys()).pending(BOB))).toBe(acceptedAt + proofFreshnessMs);
      link.at += proofFreshnessMs - 1;
      expect(await read(BOB)).toMatchObject({ lastOnlineProof: { acceptedAt } });
      link.at += 1;
      expect(await read(BOB)).toMatchObject({ lastOnlineProof: null });
    });
  });

  describe("what a target decided of a session", () => {
    test.each([
      ["approve", "approved"],
      ["reject", "rejected"],
    ] as const)("is pending until it says %s", async (verb, decided) => {
      const { sessionId, acceptedAt } = await pod.request(ALICE, BOB);
      expect((await read(BOB, sessionId)).session).toEqual({
        requester: ALICE,
        decision: "pending",
        createdAt: acceptedAt,
        delivery: "not_seen",
        isDisplaced: false,
      });
      await pod.take(decisionOf(verb, BOB, ALICE, sessionId as string));
      expect((await read(BOB, sessionId)).session?.decision).toBe(decided);
    });

    test("tells whether the target was online for what was asked", async () => {
      await pod.register(BOB);
      const { sessionId } = await pod.request(ALICE, BOB);
      expect((await read(BOB, sessionId)).session?.delivery).toBe("online");
    });

    test("is expired when its time has run out", async () => {
      const { sessionId } = await pod.request(ALICE, BOB, 5);
      link.at += 5 * 60_000;
      expect((await read(BOB, sessionId)).session).toMatchObject({ decision: "expired", isDisplaced: false });
    });

    test("is expired, and displaced, when newer ones took its place before its time ran out", async () => {
      const { sessionId } = await pod.request(ALICE, BOB, 5);
      for (let n = 0; n < SESSION_LIMITS.maxPendingPerRequesterAtTarget; n += 1) await pod.request(ALICE, BOB, 60);
      expect((await read(BOB, sessionId)).session).toMatchObject({ decision: "expired", isDisplaced: true });
      link.at += 5 * 60_000;
      expect((await read(BOB, sessionId)).session).toMatchObject({ decision: "expired", isDisplaced: false });
    });

    test("is not told of another target's session, nor of one that there is not", async () => {
      const { sessionId } = await pod.request(ALICE, BOB);
      expect((await read(CAROL, sessionId)).session).toBeNull();
      expect((await read(BOB, "ses_00abcdefghjkmnpqrstvwxyz01")).session).toBeNull();
    });
  });
});
