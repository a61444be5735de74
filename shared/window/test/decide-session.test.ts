import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { SESSION_LIMITS } from "protocol/contract/limits.ts";
import { partitionKeys } from "../src/redis/keys.ts";
import { resetWindow } from "../src/reset.ts";
import { readSession } from "../src/sessions.ts";
import { decisionOf, envelopeOf, textOf } from "./envelopes.ts";
import { Bench, ClockedLink, type Pod } from "./kit.ts";

const MINUTE = 60_000;
const bench = new Bench();
let link: ClockedLink;
let pod: Pod;
let sessionId: string;

beforeEach(async () => {
  await bench.open();
  link = await ClockedLink.of(bench);
  pod = await bench.pod({ link, pod: "pod-a" });
  sessionId = (await pod.request("agent://alice", "agent://bob", 5)).sessionId as string;
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

const decision = (verb: "approve" | "reject", from = "agent://bob", to = "agent://alice", id = sessionId) =>
  decisionOf(verb, from, to, id);
const statusOf = async () => (await readSession(link, pod.window, sessionId))?.status;

describe("a session", () => {
  test.each([
    ["approve", "approved"],
    ["reject", "rejected"],
  ] as const)("is decided once by its target: %s makes it %s, for the requester to know", async (verb, status) => {
    const ear = await bench.ear("pod-a");
    await pod.register("agent://alice", "c1");
    const envelope = decision(verb);
    const accepted = { outcome: "accepted", delivery: "online", sessionId, sessionStatus: status };
    expect(await pod.take(envelope)).toMatchObject(accepted);
    expect(await ear.lines()).toEqual([
      expect.stringMatching(new RegExp(`^deliver c1 \\d+ agent://alice ${sessionId} `)),
    ]);
    expect(await readSession(link, pod.window, sessionId)).toMatchObject({ status, decidedAt: link.at });
    expect(await pod.take(decision("approve"))).toEqual({ outcome: "session_closed" });
    expect(await pod.take(decision("reject"))).toEqual({ outcome: "session_closed" });
    expect(await statusOf()).toBe(status);
  });

  test("decided by an envelope that comes again gets the same answer, and is delivered once", async () => {
    const ear = await bench.ear("pod-a");
    await pod.register("agent://alice", "c1");
    const envelope = decision("approve");
    expect(await pod.prepare(envelope)).toEqual({ kind: "decision", state: "a", decidedAt: String(link.at) });
    expect(await pod.take(envelope)).toMatchObject({ outcome: "accepted" });
    expect(await pod.take(envelope)).toMatchObject({ outcome: "duplicate", sessionId, sessionStatus: "approved" });
    const lines = await ear.lines();
    expect(lines.map((line) => line.endsWith(textOf(envelope)))).toEqual([true]);
  });

  test("approved by an envelope is not rejected by another of the same key, id and time", async () => {
    const envelope = decision("approve");
    await pod.take(envelope);
    const other = { ...envelope, type: "session.reject" };
    expect(await pod.take(other)).toMatchObject({ outcome: "duplicate", sessionStatus: "approved" });
    expect(await statusOf()).toBe("approved");
  });

  test("is not decided by anybody but its target, nor for anybody but its requester", async () => {
    const byOther = decision("approve", "agent://mallory");
    const byRequester = decision("approve", "agent://alice", "agent://bob");
    const forOther = decision("approve", "agent://bob", "agent://mallory");
    for (const envelope of [byOther, byRequester, forOther]) {
      expect(await pod.take(envelope)).toEqual({ outcome: "not_your_session" });
    }
    expect(await pod.take(decision("approve"))).toMatchObject({ outcome: "accepted" });
  });

  test("that does not exist, or that no partition can have, is unknown", async () => {
    const [missing, elsewhere] = [`ses_00${"0".repeat(24)}`, `ses_01${"0".repeat(24)}`];
    for (const id of [missing, elsewhere]) {
      const envelope = decision("approve", "agent://bob", "agent://alice", id);
      expect(await pod.take(envelope)).toEqual({ outcome: "unknown_session" });
    }
  });

  test("is closed from the millisecond on that its time runs out", async () => {
    link.at += 5 * MINUTE;
    expect(await pod.take(decision("approve"))).toEqual({ outcome: "session_closed" });
    expect(await statusOf()).toBe("expired");
    link.at -= 1;
    expect(await pod.take(decision("approve"))).toMatchObject({ outcome: "accepted" });
  });

  test("decided in its last millisecond stays decided, and is kept for an hour from then", async () => {
    link.at += 5 * MINUTE - 1;
    const decidedAt = Date.now();
    expect(await pod.take(decision("approve"))).toMatchObject({ outcome: "accepted" });
    link.at += MINUTE;
    expect(await statusOf()).toBe("approved");
    const forgottenAt = await bench.client.pexpiretime((await bench.keys()).session(sessionId));
    expect(forgottenAt).toBeGreaterThanOrEqual(decidedAt + SESSION_LIMITS.keepAfterEndMs);
    expect(forgottenAt).toBeLessThanOrEqual(Date.now() + SESSION_LIMITS.keepAfterEndMs);
  });

  test("decided no longer waits for its target", async () => {
    await pod.take(decision("reject"));
    expect(await bench.client.exists((await bench.keys()).asked("agent://bob"))).toBe(0);
  });

  test("of a window that was reset is unknown; its decision opens nothing, and is made in the new window", async () => {
    await bench.client.flushall();
    expect(await pod.take(decision("approve"))).toEqual({ outcome: "unknown_session" });
    expect(await statusOf()).toBeUndefined();
    expect(await bench.client.hget(partitionKeys.window(0), "id")).toBe(pod.window.current.id);
  });

  test("of a window that is reset while its decision is under way is looked for in the new window", async () => {
    const run = link.run.bind(link);
    link.run = async (script, keys, args) => {
      const reply = await run(script, keys, args);
      if (script === "reserve_decision") {
        link.run = run;
        await resetWindow(link, { partitions: 1, deployId: "deploy-1", force: true });
      }
      return reply;
    };
    expect(await pod.take(decision("approve"))).toEqual({ outcome: "unknown_session" });
    expect(pod.window.current.id).toBe(await bench.client.hget(partitionKeys.window(0), "id"));
  });

  test("is not found under an id that is none", async () => {
    expect(await readSession(link, pod.window, "ses_none")).toBeNull();
    expect(await readSession(link, pod.window, `ses_zz${"0".repeat(24)}`)).toBeNull();
  });
});

test("a decision says unavailable while Redis is gone", async () => {
  const real = await bench.pod({ pod: "pod-b" });
  await bench.redis.kill();
  const envelope = envelopeOf("session.approve", "agent://bob", {
    to: "agent://alice",
    payload: { session_id: sessionId },
  });
  expect(await real.take(envelope)).toEqual({ outcome: "unavailable" });
});
