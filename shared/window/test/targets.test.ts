import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "protocol/contract/limits.ts";
import { readTarget } from "../src/targets.ts";
import { decisionOf } from "./envelopes.ts";
import { Bench, ClockedLink, type Pod } from "./kit.ts";

const [ALICE, BOB, CAROL] = ["agent://alice", "agent://bob", "agent://carol"] as const;
const { offlineAfterMs } = PRESENCE_LIMITS;
const { proofFreshnessMs } = SESSION_LIMITS;
const bench = new Bench();
let link: ClockedLink;
let pod: Pod;

const read = (agent: string, sessionId: string | null = null) =>
  readTarget(link, pod.window, { agent, sessionId }, { offlineAfterMs, proofFreshnessMs });

beforeEach(async () => {
  await bench.open();
  link = await ClockedLink.of(bench);
  pod = await bench.pod({ link, pod: "pod-a" });
  await bench.ear("pod-a");
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

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
    expect(await bench.client.pexpiretime((await bench.keys()).asked(BOB))).toBe(acceptedAt + proofFreshnessMs);
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
