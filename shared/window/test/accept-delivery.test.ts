import { afterAll, afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { until } from "../../../test/support/until.ts";
import type { Prepared } from "../src/acceptance/acceptance.ts";
import { REDIS_LIMITS } from "../src/redis/limits.ts";
import type { RedisLink } from "../src/redis/redis-link.ts";
import type { Reply } from "../src/redis/scripts.ts";
import { unavailable } from "../src/unavailable.ts";
import { decisionOf, delivery, envelopeOf, messageOf, requestOf, textOf } from "./envelopes.ts";
import { Bench, type Pod } from "./kit.ts";

const bench = new Bench();
let pod: Pod;

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ pod: "pod-a" });
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

/** Calls that Redis carried out during `work`, scripts' own included. */
async function callsDuring(work: () => Promise<unknown>): Promise<Record<string, number>> {
  await bench.client.config("RESETSTAT");
  await work();
  return await bench.commandCalls();
}

/** The next call of a script waits until it is told to be carried out, or to stay without answer. */
function holdOneCall() {
  const run = pod.link.run.bind(pod.link);
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const spy = jest.spyOn(pod.link, "run").mockReturnValueOnce(promise);
  const calls = () => spy.mock.calls.length;
  const carryOut = async () => resolve(await run(...(spy.mock.calls[0] as Parameters<RedisLink["run"]>)));
  return { calls, carryOut, lose: () => reject(unavailable()) };
}

describe("a message", () => {
  test("to an online target reaches its pod, for its connection under its epoch, as it was signed", async () => {
    const ear = await bench.ear("pod-b");
    const other = await bench.pod({ pod: "pod-b" });
    const { epoch } = await other.register("agent://bob", "c9");
    const message = messageOf("agent://alice", "agent://bob");
    expect(delivery(await pod.accept(message))).toMatchObject({
      outcome: "accepted",
      delivery: "online",
      sessionId: null,
      sessionStatus: null,
    });
    expect(await ear.lines()).toEqual([`deliver c9 ${epoch} agent://bob - ${textOf(message)}`]);
  });

  test.each([
    ["stale", PRESENCE_LIMITS.staleAfterMs + 1000],
    ["stale", PRESENCE_LIMITS.offlineAfterMs + 1000],
    ["not_seen", PRESENCE_LIMITS.forgetAfterMs + 1000],
  ])("to a target that is %s, seen %i ms ago, is accepted and not delivered", async (status, age) => {
    const ear = await bench.ear("pod-b");
    await bench.seed("agent://bob", "pod-b c9 7", Date.now() - age);
    expect(delivery(await pod.accept(messageOf("agent://alice", "agent://bob"))).delivery).toBe(status);
    expect(await ear.lines()).toEqual([]);
  });

  test("to a target whose connection is gone finds it stale, however lately it was seen", async () => {
    await bench.client.zadd((await bench.keys()).presence, Date.now(), "agent://bob");
    expect(delivery(await pod.accept(messageOf("agent://alice", "agent://bob"))).delivery).toBe("stale");
  });

  test("to an agent that nobody saw is accepted as not seen", async () => {
    expect(delivery(await pod.accept(messageOf("agent://alice", "agent://bob"))).delivery).toBe("not_seen");
  });
});

describe("a pod without subscriber", () => {
  test("leaves its targets stale at once, and releases their routes and no others", async () => {
    await bench.ear("pod-b");
    await bench.seed("agent://bob", "pod-dead c1 7", Date.now());
    await bench.seed("agent://carol", "pod-dead c1 8", Date.now());
    await bench.seed("agent://dave", "pod-b c2 9", Date.now());
    const [toBob, toDave] = await pod.acceptAll(
      messageOf("agent://alice", "agent://bob"),
      messageOf("agent://alice", "agent://dave"),
    );
    expect([toBob, toDave]).toMatchObject([{ delivery: "stale" }, { delivery: "online" }]);
    expect(Object.keys(await bench.client.hgetall((await bench.keys()).route)).sort()).toEqual([
      "agent://carol",
      "agent://dave",
    ]);
    expect(await bench.client.zrange((await bench.keys()).online, "0", "-1")).toEqual([
      "agent://carol",
      "agent://dave",
    ]);
    expect(await bench.client.zscore((await bench.keys()).presence, "agent://bob")).not.toBeNull();
  });

  test("leaves all that was sent to it in the batch stale, repeats and sessions included", async () => {
    await bench.seed("agent://bob", "pod-dead c1 7", Date.now());
    const message = messageOf("agent://alice", "agent://bob");
    const outcomes = await pod.acceptAll(message, message, requestOf("agent://alice", "agent://bob"));
    expect(outcomes).toMatchObject([
      { outcome: "accepted", delivery: "stale" },
      { outcome: "duplicate", delivery: "stale" },
      { outcome: "accepted", delivery: "stale", sessionStatus: "pending_until_session.approve_or_session.reject" },
    ]);
  });

  test("does not cost an agent the newer route that it got in the same batch", async () => {
    const ear = await bench.ear("pod-a");
    await bench.seed("agent://bob", "pod-dead c1 7", Date.now());
    const last = messageOf("agent://alice", "agent://bob");
    const [before, registered, after] = await pod.acceptAll(
      messageOf("agent://alice", "agent://bob"),
      envelopeOf("agent.register", "agent://bob"),
      last,
    );
    expect([before, registered, after]).toMatchObject([
      { delivery: "stale" },
      { outcome: "accepted" },
      { delivery: "online" },
    ]);
    const epoch = registered !== undefined && "epoch" in registered ? registered.epoch : null;
    expect((await bench.routes())["agent://bob"]).toBe(`pod-a c1 ${epoch}`);
    expect(await bench.client.zscore((await bench.keys()).online, "agent://bob")).not.toBeNull();
    expect(await ear.lines()).toEqual([`deliver c1 ${epoch} agent://bob - ${textOf(last)}`]);
  });
});

describe("a batch", () => {
  test("of mixed kinds is one call and one publish a pod, each pod's lines in the order of arrival", async () => {
    const [earA, earB] = [await bench.ear("pod-a"), await bench.ear("pod-b")];
    await bench.seed("agent://bob", "pod-a c1 7", Date.now());
    await bench.seed("agent://carol", "pod-b c2 8", Date.now());
    const session = await pod.request("agent://bob", "agent://carol");
    await earB.lines();

    const first = messageOf("agent://alice", "agent://bob");
    const request = requestOf("agent://alice", "agent://carol");
    const takeover = envelopeOf("agent.register", "agent://carol");
    const approval = decisionOf("approve", "agent://carol", "agent://bob", session.sessionId as string);
    const last = messageOf("agent://alice", "agent://carol");
    const prepared = (await pod.prepare(approval)) as Prepared;
    const batch = [first, request, envelopeOf("agent.heartbeat", "agent://bob"), takeover, approval, last];
    const calls = await callsDuring(async () => {
      const outcomes = batch.map((one) => pod.accept(one, one === approval ? { prepared } : {}));
      expect(await Promise.all(outcomes)).toMatchObject(Array(6).fill({ outcome: "accepted" }));
    });
    expect({ scripts: calls.evalsha, publishes: calls.spublish }).toEqual({ scripts: 1, publishes: 2 });

    const atA = await earA.messages();
    const atB = await earB.messages();
    expect([atA.length, atB.length]).toEqual([1, 1]);
    const gist = (lines: string) => lines.split("\n").map((line) => line.replace(/ \d+ /, " "));
    expect(gist(atA[0] as string)).toEqual([
      `deliver c1 agent://bob - ${textOf(first)}`,
      `deliver c1 agent://bob ${session.sessionId} ${textOf(approval)}`,
      `deliver c1 agent://carol - ${textOf(last)}`,
    ]);
    expect(gist(atB[0] as string)).toEqual([
      expect.stringMatching(/^deliver c2 agent:\/\/carol ses_\S{26} \{/),
      "superseded c2 agent://carol",
    ]);
  });

  test("to one online target costs Redis one guard entry a message, and the rest once", async () => {
    await bench.ear("pod-a");
    await bench.seed("agent://bob", "pod-a c1 7", Date.now());
    const ts = Date.now();
    const messages = Array.from({ length: 50 }, () => messageOf("agent://alice", "agent://bob", { ts }));
    const calls = await callsDuring(() => pod.acceptAll(...messages));
    const { sadd, scard, zscore, hget, hmget, spublish, pexpireat, hincrby, ...others } = calls;
    expect({ sadd, scard, zscore, hget, hmget, spublish, pexpireat, hincrby }).toEqual({
      sadd: 50,
      scard: 1,
      zscore: undefined,
      hget: 1,
      hmget: 1,
      spublish: 1,
      pexpireat: 1,
      hincrby: 1,
    });
    // The first batch of a minute looks for minutes to fold.
    const expected = /^(config\|resetstat|evalsha|info|time|ping|hgetall)$/;
    expect(Object.keys(others).filter((name) => !expected.test(name))).toEqual([]);
  });

  test("is capped, and what is over goes with the next call in order", async () => {
    const ear = await bench.ear("pod-a");
    await bench.seed("agent://bob", "pod-a c1 7", Date.now());
    const total = REDIS_LIMITS.acceptanceBatch * 2 + 1;
    const messages = Array.from({ length: total }, () => messageOf("agent://alice", "agent://bob"));
    const calls = await callsDuring(() => pod.acceptAll(...messages));
    expect(calls.evalsha).toBe(3);
    const ids = (await ear.lines()).map((line) => /"id":"([^"]+)"/.exec(line)?.[1]);
    expect(ids).toEqual(messages.map(({ id }) => id));
  });

  test("of large envelopes is capped by its bytes", async () => {
    const payload = { message: "x".repeat(30_000) };
    const messages = Array.from({ length: 60 }, () => messageOf("agent://alice", "agent://bob", { payload }));
    const calls = await callsDuring(() => pod.acceptAll(...messages));
    expect(calls.evalsha).toBe(2);
  });

  test("leaves out what nobody waits for any more, which is neither delivered nor guarded", async () => {
    const ear = await bench.ear("pod-a");
    await bench.seed("agent://bob", "pod-a c1 7", Date.now());
    const [left, kept] = [messageOf("agent://alice", "agent://bob"), messageOf("agent://alice", "agent://bob")];
    const outcomes = await Promise.all([pod.accept(left, { abandoned: () => true }), pod.accept(kept)]);
    expect(outcomes).toMatchObject([{ outcome: "abandoned" }, { outcome: "accepted" }]);
    expect(await ear.lines()).toEqual([`deliver c1 7 agent://bob - ${textOf(kept)}`]);
    expect(await pod.accept(left)).toMatchObject({ outcome: "accepted" });
  });

  test("waits for the one before it, so that no delivery overtakes another", async () => {
    const { carryOut, calls } = holdOneCall();
    const outcomes = [pod.accept(messageOf("agent://alice", "agent://bob"))];
    await until("the first call is under way", () => calls() === 1);
    outcomes.push(pod.accept(messageOf("agent://alice", "agent://bob")));
    await pod.link.command("PING");
    expect(calls()).toBe(1);
    await carryOut();
    expect(await Promise.all(outcomes)).toMatchObject(Array(2).fill({ outcome: "accepted" }));
    expect(calls()).toBe(2);
  });

  test("that waits behind a call without answer is refused with it", async () => {
    const { lose, calls } = holdOneCall();
    const outcomes = [pod.accept(messageOf("agent://alice", "agent://bob"))];
    await until("the first call is under way", () => calls() === 1);
    outcomes.push(pod.accept(messageOf("agent://alice", "agent://bob")));
    lose();
    expect(await Promise.all(outcomes)).toEqual([{ outcome: "unavailable" }, { outcome: "unavailable", done: false }]);
    expect(calls()).toBe(1);
  });

  test("that the link did not send is told from one that had no answer", async () => {
    const send = () => pod.accept(messageOf("agent://alice", "agent://bob"));
    await bench.redis.pause();
    const unanswered = await send();
    const unsent = await send();
    await bench.redis.resume();
    expect([unanswered, unsent]).toEqual([{ outcome: "unavailable" }, { outcome: "unavailable", done: false }]);
  });
});
