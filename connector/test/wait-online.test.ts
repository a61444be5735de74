import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { until } from "../../test/support/until.ts";
import { HttpClient } from "../src/http-client.ts";
import type { Connector } from "../src/index.ts";
import { shared } from "./fixture.ts";
import { errorOf, next, PodStage, WholeStage } from "./kit.ts";
import { holdWaits, LONG_MS, Waits } from "./times.ts";
import type { WireProxy } from "./wire-proxy.ts";

const BOB = "agent://bob";

afterEach(() => {
  jest.restoreAllMocks();
});

describe("With waitOnline", () => {
  const stage = shared(new WholeStage("alice", "bob"));
  let alice: Connector;

  beforeEach(async () => {
    alice = await stage.online("alice", stage.url);
  });

  test("a question and a message wait for their target, and nothing goes out before", async () => {
    const asked = alice.ask(BOB, { n: 1 }, { waitOnline: 30_000 });
    const sent = alice.send(BOB, { n: 2 }, { waitOnline: 30_000 });
    const bob = await stage.online("bob", stage.url);
    bob.on("delivery", (delivery) => delivery.reply(delivery.payload));
    expect((await asked).payload).toEqual({ n: 1 });
    expect(await sent).toMatchObject({ delivery: { canDeliverRealtime: true } });
  });

  test("what waited in vain was not sent", async () => {
    const timeIsOver = holdWaits();
    const looks = jest.spyOn(HttpClient.prototype, "ask");
    const nobody = ["agent://nobody", {}, { waitOnline: LONG_MS }] as const;
    const calls = [errorOf(alice.ask(...nobody)), errorOf(alice.send(...nobody))];
    await until("the first look was answered", () => looks.mock.calls.length > 1);
    timeIsOver();
    for (const error of await Promise.all(calls)) {
      expect(error).toMatchObject({ code: "target_not_online", outcome: "refused", retry: "later" });
      expect(error.envelopeId).toBeUndefined();
    }
  });

  test("what can never be online is refused at once", async () => {
    const error = await errorOf(alice.ask("agent://BOB", {}, { waitOnline: 60_000 }));
    expect(error).toMatchObject({
      code: "invalid_envelope",
      outcome: "refused",
      retry: "fix",
      hint: expect.any(String),
    });
  });

  test("a reply waits for an asker that is away", async () => {
    const bob = await stage.online("bob", stage.url);
    await alice.send(BOB, {});
    const message = await next(bob);
    await alice.close();
    const replied = message.reply({ n: 1 }, { waitOnline: 60_000 });
    await until(
      "alice is seen to be gone",
      async () => !(await bob.send("agent://alice", {})).delivery.canDeliverRealtime,
    );
    alice = await stage.online("alice", stage.url);
    await replied;
  });
});

describe("While it waits, the connector", () => {
  const stage = shared(new PodStage("alice", "bob"));
  let proxy: WireProxy;
  let alice: Connector;
  let looks: number;
  /** What check-online answers. */
  let answer: object;

  beforeEach(async () => {
    [looks, answer] = [0, { can_deliver_realtime: false }];
    proxy = await stage.proxy(stage.url);
    alice = await stage.online("alice", proxy.url, { maxPending: 200 });
    proxy.presence = async () => {
      looks += 1;
      return JSON.stringify(answer);
    };
  });

  test("asks once for all who wait for the same agent, of whom there are as many as may be pending", async () => {
    const waiting = Array.from({ length: 200 }, () => alice.send(BOB, {}, { waitOnline: 60_000 }));
    expect(await errorOf(alice.send(BOB, {}, { waitOnline: 60_000 }))).toMatchObject({ code: "queue_full" });
    await until("it has asked again", () => looks >= 2);
    await stage.online("bob", stage.url);
    answer = { status: "online", can_deliver_realtime: true };
    await Promise.all(waiting);
    expect(looks).toBeLessThan(20);
  });

  test.each([
    [61_234, 61_234],
    [1e12, 3_600_000],
  ])("asks no sooner than the relay lets it, after %d ms, and waits for no longer than an hour", async (asked, ms) => {
    answer = { ok: false, code: "rate_limited", retry_after_ms: asked };
    const waits = new Waits();
    const error = errorOf(alice.ask(BOB, {}, { waitOnline: LONG_MS }));
    await waits.begun(ms);
    expect(looks).toBe(1);
    waits.endLong();
    expect(await error).toMatchObject({ code: "timeout", outcome: "refused" });
  });

  test("takes for no answer what says that the target can be reached, and not how it is", async () => {
    answer = { can_deliver_realtime: true };
    const timeIsOver = holdWaits();
    const error = errorOf(alice.waitOnline(BOB, { timeoutMs: LONG_MS }));
    await until("it has asked again", () => looks > 1);
    timeIsOver();
    expect(await error).toMatchObject({ code: "timeout", outcome: "refused" });
  });

  test("waits on when the target is gone again before the question reaches it", async () => {
    answer = { status: "online", can_deliver_realtime: true };
    const asked = alice.ask(BOB, { n: 1 }, { waitOnline: 60_000 });
    await until("it was sent in vain", () => proxy.sent.some(({ type }) => type === "message.send"));
    const bob = await stage.online("bob", stage.url);
    bob.on("delivery", (delivery) => delivery.reply(delivery.payload));
    expect((await asked).payload).toEqual({ n: 1 });
    const ids = proxy.sent.filter(({ type }) => type === "message.send").map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("ends the wait when its caller aborts it, or with itself, and asks no more", async () => {
    const caller = new AbortController();
    const options = { waitOnline: 60_000, signal: caller.signal };
    const aborted = [alice.ask(BOB, {}, options), alice.send(BOB, {}, options)];
    const closed = [alice.ask(BOB, {}, { waitOnline: 60_000 }), alice.send(BOB, {}, { waitOnline: 60_000 })];
    caller.abort();
    for (const call of aborted) expect(await errorOf(call)).toMatchObject({ code: "aborted", outcome: "refused" });
    await alice.close();
    for (const call of closed) expect(await errorOf(call)).toMatchObject({ code: "closed", outcome: "refused" });
    expect(await errorOf(alice.send(BOB, {}, { waitOnline: 1 }))).toMatchObject({ code: "closed" });
    expect(proxy.sent.filter(({ type }) => type === "message.send")).toEqual([]);
  });
});
