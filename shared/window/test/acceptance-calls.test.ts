import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { PRESENCE_LIMITS, SESSION_LIMITS } from "relay-protocol/wire/limits.ts";
import { createLogger } from "relay-runtime/logging.ts";
import { METRICS } from "relay-runtime/metrics/catalogue.ts";
import { fakeTimers } from "../../../test/support/time.ts";
import { until } from "../../../test/support/until.ts";
import { type AcceptanceItem, type Prepared, sessionIdOf } from "../src/acceptance/acceptance.ts";
import { Acceptor } from "../src/acceptance/acceptor.ts";
import { partitionOf } from "../src/redis/partitions.ts";
import { unavailable } from "../src/redis/redis-calls.ts";
import { REDIS_LIMITS } from "../src/redis/redis-limits.ts";
import { RedisLink } from "../src/redis/redis-link.ts";
import type { Reply } from "../src/redis/scripts.ts";
import { ProcessWindow } from "../src/window/process-window.ts";
import { ALICE, BOB, CAROL, decisionOf, envelopeOf, messageOf, requestOf, textOf } from "./envelopes.ts";
import { type Ear, LOGGER, Pod, redisBench } from "./kit.ts";

const bench = redisBench();
let pod: Pod;

describe("a batch", () => {
  beforeEach(async () => {
    pod = await bench.pod({ pod: "pod-a" });
  });

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

  test("of mixed kinds is one call and one publish a pod, each pod's lines in the order of arrival", async () => {
    const [earA, earB] = [await bench.ear("pod-a"), await bench.ear("pod-b")];
    await bench.seed(BOB, "pod-a c1 7", Date.now());
    await bench.seed(CAROL, "pod-b c2 8", Date.now());
    const session = await pod.request(BOB, CAROL);
    await earB.lines();

    const first = messageOf(ALICE, BOB);
    const request = requestOf(ALICE, CAROL);
    const takeover = envelopeOf("agent.register", CAROL);
    const approval = decisionOf("approve", CAROL, BOB, session.sessionId as string);
    const last = messageOf(ALICE, CAROL);
    const prepared = (await pod.prepare(approval)) as Prepared;
    const batch = [first, request, envelopeOf("agent.heartbeat", BOB), takeover, approval, last];
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

  test("to agents of several partitions is one call a partition", async () => {
    await bench.client.flushall();
    const several = await bench.pod({ partitions: 4 });
    const agents = Array.from({ length: 40 }, (_, n) => `agent://worker-${n}`);
    expect(new Set(agents.map((agent) => partitionOf(agent, 4))).size).toBe(4);
    const calls = await callsDuring(async () => {
      const outcomes = await several.acceptAll(...agents.map((agent) => envelopeOf("agent.register", agent)));
      expect(outcomes).toMatchObject(agents.map(() => ({ outcome: "accepted" })));
    });
    expect(calls.evalsha).toBe(4);
  });

  test("to one online target costs Redis one guard entry a message, and the rest once", async () => {
    await bench.ear("pod-a");
    await bench.seed(BOB, "pod-a c1 7", Date.now());
    const ts = Date.now();
    const messages = Array.from({ length: 50 }, () => messageOf(ALICE, BOB, { ts }));
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
    await bench.seed(BOB, "pod-a c1 7", Date.now());
    const total = REDIS_LIMITS.acceptanceBatch * 2 + 1;
    const messages = Array.from({ length: total }, () => messageOf(ALICE, BOB));
    const calls = await callsDuring(() => pod.acceptAll(...messages));
    expect(calls.evalsha).toBe(3);
    const ids = (await ear.lines()).map((line) => /"id":"([^"]+)"/.exec(line)?.[1]);
    expect(ids).toEqual(messages.map(({ id }) => id));
  });

  test("of large envelopes is capped by its bytes", async () => {
    const payload = { message: "x".repeat(30_000) };
    const messages = Array.from({ length: 60 }, () => messageOf(ALICE, BOB, { payload }));
    const calls = await callsDuring(() => pod.acceptAll(...messages));
    expect(calls.evalsha).toBe(2);
  });

  test("leaves out what nobody waits for any more, which is neither delivered nor guarded", async () => {
    const ear = await bench.ear("pod-a");
    await bench.seed(BOB, "pod-a c1 7", Date.now());
    const [left, kept] = [messageOf(ALICE, BOB), messageOf(ALICE, BOB)];
    const outcomes = await Promise.all([pod.accept(left, { abandoned: () => true }), pod.accept(kept)]);
    expect(outcomes).toMatchObject([{ outcome: "abandoned" }, { outcome: "accepted" }]);
    expect(await ear.lines()).toEqual([`deliver c1 7 agent://bob - ${textOf(kept)}`]);
    expect(await pod.accept(left)).toMatchObject({ outcome: "accepted" });
  });

  test("waits for the one before it, so that no delivery overtakes another", async () => {
    const { carryOut, calls } = holdOneCall();
    const outcomes = [pod.accept(messageOf(ALICE, BOB))];
    await until("the first call is under way", () => calls() === 1);
    outcomes.push(pod.accept(messageOf(ALICE, BOB)));
    await pod.link.command("PING");
    expect(calls()).toBe(1);
    await carryOut();
    expect(await Promise.all(outcomes)).toMatchObject(Array(2).fill({ outcome: "accepted" }));
    expect(calls()).toBe(2);
  });

  test("that waits behind a call without answer is refused with it", async () => {
    const { lose, calls } = holdOneCall();
    const outcomes = [pod.accept(messageOf(ALICE, BOB))];
    await until("the first call is under way", () => calls() === 1);
    outcomes.push(pod.accept(messageOf(ALICE, BOB)));
    lose();
    expect(await Promise.all(outcomes)).toEqual([{ outcome: "unavailable" }, { outcome: "unavailable", done: false }]);
    expect(calls()).toBe(1);
  });

  test("that the link did not send is told from one that had no answer", async () => {
    const send = () => pod.accept(messageOf(ALICE, BOB));
    await bench.redis.pause();
    const unanswered = await send();
    const unsent = await send();
    await bench.redis.resume();
    expect([unanswered, unsent]).toEqual([{ outcome: "unavailable" }, { outcome: "unavailable", done: false }]);
  });
});

describe("a queue that gathers", () => {
  let ear: Ear;
  let calls: number;

  /** The register is the first call. */
  async function gathering(gatherMs: number): Promise<void> {
    pod = await bench.pod({ gatherMs });
    ear = await bench.ear("pod-a");
    await pod.register(BOB);
    const { runByDeadline } = pod.link;
    jest.spyOn(pod.link, "runByDeadline").mockImplementation((...call) => {
      calls += 1;
      return runByDeadline.apply(pod.link, call);
    });
  }

  beforeEach(() => {
    calls = 0;
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  const messages = (count: number) => Array.from({ length: count }, () => messageOf(ALICE, BOB));
  const idsHeard = async () => (await ear.lines()).map((line) => /"id":"([^"]+)"/.exec(line)?.[1]);

  test("sends what comes in one after the other in one call, in order", async () => {
    await gathering(60_000);
    const sent = messages(3);
    const outcomes = [];
    fakeTimers();
    for (const message of sent) {
      outcomes.push(pod.accept(message));
      await turn();
    }
    expect(calls).toBe(0);
    jest.advanceTimersByTime(60_000);
    jest.useRealTimers();
    expect(await Promise.all(outcomes)).toMatchObject(Array(3).fill({ outcome: "accepted", delivery: "online" }));
    expect(calls).toBe(1);
    expect(await idsHeard()).toEqual(sent.map(({ id }) => id));
  });

  test("begins each call at least so long after the one before", async () => {
    await gathering(60_000);
    fakeTimers();
    for (const [before, message] of messages(2).entries()) {
      const outcome = pod.accept(message);
      await turn();
      // The rest is more than passes by itself since the call before.
      jest.advanceTimersByTime(45_000);
      await turn();
      expect(calls).toBe(before);
      jest.advanceTimersByTime(15_000);
      await turn();
      expect(calls).toBe(before + 1);
      expect(await outcome).toMatchObject({ outcome: "accepted" });
    }
  });

  test("waits for nobody once a call is full", async () => {
    await gathering(60_000);
    const sent = messages(REDIS_LIMITS.acceptanceBatch);
    const outcomes = [pod.accept(sent[0] as (typeof sent)[0])];
    await turn();
    outcomes.push(...sent.slice(1).map((message) => pod.accept(message)));
    expect(await Promise.all(outcomes)).toMatchObject(sent.map(() => ({ outcome: "accepted" })));
    expect(await idsHeard()).toEqual(sent.map(({ id }) => id));
  });

  test("sends at once what comes alone when no call was before it", async () => {
    const idle = await bench.pod({ gatherMs: 60_000 });
    expect(await idle.accept(messageOf(ALICE, BOB))).toMatchObject({ outcome: "accepted" });
  });
});

describe("an acceptor", () => {
  let log: object[];

  beforeEach(async () => {
    log = [];
    const logger = createLogger({ service: "test", level: "debug" }, { write: (line) => log.push(JSON.parse(line)) });
    const { link, window } = await bench.pod();
    const { offlineAfterMs } = PRESENCE_LIMITS;
    const { proofFreshnessMs } = SESSION_LIMITS;
    const options = { link, window, pod: "pod-a", offlineAfterMs, proofFreshnessMs, logger };
    pod = new Pod(link, window, new Acceptor(options));
  });

  const fail = () => {
    throw new TypeError("a fault of ours");
  };
  const message = () => messageOf(ALICE, BOB);
  const LOGGED = { level: "error", err: { type: "TypeError", message: "a fault of ours" } };

  describe("acceptance goes on, and logs the fault,", () => {
    test("when the taker of an outcome throws", async () => {
      const envelope = message();
      const item = { envelope, kind: "message", text: textOf(envelope), origin: "websocket" } as const;
      const failing: AcceptanceItem = { ...item, principal: "key:key-1", connection: "c1", done: fail };
      pod.acceptor.accept(failing);
      pod.acceptor.accept({ ...failing, abandoned: () => true });
      expect(await pod.accept(message())).toMatchObject({ outcome: "accepted" });
      expect(log).toMatchObject([LOGGED, LOGGED]);
    });

    test("when an observer throws, of the outcomes as of the calls: every outcome is told", async () => {
      pod.acceptor.observe({ called: fail, settled: fail });
      expect(await pod.acceptAll(message(), message())).toMatchObject(Array(2).fill({ outcome: "accepted" }));
      expect(await pod.accept(message())).toMatchObject({ outcome: "accepted" });
      expect(log).toMatchObject(Array(5).fill(LOGGED));
    });
  });

  const NOT_ACCEPT_FROM = ["resetkeys", "~relay:{*}:[b-z]*"];

  test.each([
    ["publish", undefined, ["-spublish"]],
    ["read whom agents accept envelopes from", undefined, NOT_ACCEPT_FROM],
    ["write it", "pod-a", NOT_ACCEPT_FROM],
  ])("a link that may not %s is not used: the guard would take envelopes that nobody gets", async (_, pod, rights) => {
    await bench.client.call("ACL", "SETUSER", "default", ...rights);
    const link = new RedisLink({ url: bench.redis.url, name: "test", logger: LOGGER });
    bench.later(() => link.stop());
    const window = new ProcessWindow({ link, partitions: 1, deployId: "local", logger: LOGGER });
    const { offlineAfterMs } = PRESENCE_LIMITS;
    new Acceptor({ link, window, ...(pod && { pod }), offlineAfterMs, ...SESSION_LIMITS, logger: LOGGER });
    void link.start();
    await until("the reason is known", () => link.downKind === "noperm");
    await bench.client.call("ACL", "SETUSER", "default", "+spublish", "allkeys");
    await until("the link is up", () => link.up);
  });

  describe("a session decision is refused as unavailable", () => {
    const decide = () => pod.prepare(decisionOf("approve", BOB, ALICE, sessionIdOf("", 0)));

    test("by a fault of ours, which is logged", async () => {
      jest.spyOn(pod.link, "run").mockImplementationOnce(fail);
      expect(await decide()).toEqual({ outcome: "unavailable" });
      expect(log).toMatchObject([LOGGED]);
    });

    test("while Redis does not answer, of which the link has told", async () => {
      jest.spyOn(pod.link, "run").mockRejectedValueOnce(unavailable());
      expect(await decide()).toEqual({ outcome: "unavailable" });
      expect(log).toEqual([]);
    });
  });
});

test("The buckets of the metrics about Redis end at the limits that they are about", () => {
  expect(METRICS.relay_acceptance_batch_size.buckets.at(-1)).toBe(REDIS_LIMITS.acceptanceBatch);
  expect(METRICS.relay_redis_call_seconds.buckets.at(-1)).toBe(REDIS_LIMITS.commandTimeoutMs / 1000);
});
