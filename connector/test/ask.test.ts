import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import type { Frame } from "../../test/support/agent.ts";
import { until } from "../../test/support/until.ts";
import type { Connector, Delivery } from "../src/index.ts";
import { noReply } from "../src/no-reply.ts";
import { shared } from "./fixture.ts";
import { errorOf, next, PodStage, record, testAgent, untilState } from "./kit.ts";
import { holdWaits, LONG_MS } from "./times.ts";

const stage = shared(new PodStage("alice", "bob-hmac", "carol"));
const BOB = "agent://bob-hmac";
let alice: Connector;
let bob: Connector;
let heard: ReturnType<typeof record>;

beforeEach(async () => {
  alice = await stage.online("alice", stage.url);
  bob = await stage.online("bob-hmac", stage.url);
  heard = record(alice);
});

afterEach(() => {
  jest.restoreAllMocks();
});

/** Replies to each message with its payload. */
function echo(connector: Connector): void {
  connector.on("delivery", (delivery) => delivery.reply(delivery.payload));
}

/** Resolves when all that was sent to alice before has come. */
async function untilMarked(): Promise<Delivery[]> {
  await (await stage.online("carol", stage.url)).send("agent://alice", { marker: true });
  await bob.send("agent://alice", { marker: true }).catch(() => {});
  await until("the marker came", () => heard.deliveries.some(({ payload }) => payload.marker === true));
  return heard.deliveries.filter(({ payload }) => payload.marker !== true);
}

describe("A question", () => {
  test("gets its reply, in a task of its own, and nobody else gets that", async () => {
    const asked = alice.ask(BOB, { question: "How warm?" }, { type: "message.weather" });
    const question = await next(bob);
    expect(question).toMatchObject({ type: "message.weather", payload: { question: "How warm?" } });
    const task = question.envelope.task_id as string;
    expect(await question.reply({ celsius: 21 })).toMatchObject({ delivery: { canDeliverRealtime: true } });
    const reply = { from: BOB, type: "message.reply", payload: { celsius: 21 }, envelope: { task_id: task } };
    expect(await asked).toMatchObject(reply);
    expect(await untilMarked()).toEqual([]);

    const again = alice.ask(BOB, {});
    const second = await next(bob);
    expect(second.envelope.task_id).not.toBe(task);
    await second.reply({});
    await again;
  });

  test("may be to the agent itself", async () => {
    echo(alice);
    expect(await alice.ask(alice.agent, { n: 1 })).toMatchObject({ from: alice.agent, payload: { n: 1 } });
  });

  test("does not wait for others: a thousand at once get each its own reply, whatever their order", async () => {
    const questions: Delivery[] = [];
    bob.on("delivery", (question) => {
      questions.push(question);
      if (questions.length === 1000) for (const each of questions.reverse()) void each.reply(each.payload);
    });
    const asked = Array.from({ length: 1000 }, (_, n) => alice.ask(BOB, { n }));
    const replies = await Promise.all(asked);
    expect(replies.map(({ payload }) => payload.n)).toEqual(asked.map((_, n) => n));
  });

  test("is refused while as many as may be are without a reply, though the relay has accepted those", async () => {
    const few = await stage.online("carol", stage.url, { maxPending: 1 });
    const asked = few.ask(BOB, {});
    const question = await next(bob);
    await until("it is accepted", async () => (await errorOf(few.send(BOB, {}))) === undefined);
    expect(await errorOf(few.ask(BOB, {}))).toMatchObject({ code: "queue_full", outcome: "refused" });
    await question.reply({});
    await asked;
    echo(bob);
    await few.ask(BOB, {});
  });

  test("is refused at once when nobody received it", async () => {
    await bob.close();
    await until("bob is gone", async () => !(await alice.send(BOB, {})).delivery.canDeliverRealtime);
    const error = await errorOf(alice.ask(BOB, {}));
    expect(error).toMatchObject({ code: "target_not_online", outcome: "refused", retry: "later" });
    expect(await errorOf(alice.ask("agent://BOB", {}))).toMatchObject({ code: "invalid_envelope" });
  });

  test("cannot be a reply, to which nobody replies", async () => {
    expect(await errorOf(alice.ask(BOB, {}, { type: "message.reply" }))).toMatchObject({ code: "not_answerable" });
  });
});

describe("A question without a reply", () => {
  test("ends with timeout; that it was received is known, and a late reply is a delivery like any other", async () => {
    const timeIsOver = holdWaits();
    const asked = errorOf(alice.ask(BOB, {}, { timeoutMs: LONG_MS }));
    const question = await next(bob);
    // Its ack comes behind the question's.
    await alice.send(BOB, {});
    timeIsOver();
    expect(await asked).toMatchObject({ code: "timeout", outcome: "unknown", envelopeId: expect.any(String) });
    await question.reply({ late: true });
    expect(await untilMarked()).toMatchObject([{ type: "message.reply", payload: { late: true } }]);
  });

  test("is told that the connection was lost, since when, and whether it is back", () => {
    const silence = { envelopeId: "env-1", lostAt: undefined, isLost: false };
    expect(noReply(silence, 9000)).toMatchObject({ message: "No reply came in time.", outcome: "unknown" });
    const lost = noReply({ ...silence, lostAt: 1500, isLost: true }, 9000);
    expect(lost.message).toBe(
      "No reply came in time: the connection to the relay was lost 7.5 s ago, and is not back.",
    );
    expect(noReply({ ...silence, lostAt: 1500 }, 9000).message).toMatch(
      /the connection to the relay was lost meanwhile\.$/,
    );
  });

  test("was not sent when there was no connection in its time", async () => {
    const unconnected = stage.connector("carol", stage.url);
    const error = await errorOf(unconnected.ask(BOB, {}, { timeoutMs: 50 }));
    expect(error).toMatchObject({ code: "timeout", outcome: "refused" });
  });

  test("ends when its caller aborts it, and with the connector", async () => {
    const caller = new AbortController();
    const asked = [alice.ask(BOB, {}, { signal: caller.signal }), alice.ask(BOB, {})];
    await next(bob);
    await next(bob);
    await alice.send(BOB, {});
    caller.abort("enough");
    expect(await errorOf(asked[0] as Promise<unknown>)).toMatchObject({
      ...{ code: "aborted", outcome: "unknown", cause: "enough" },
    });
    await alice.close();
    expect(await errorOf(asked[1] as Promise<unknown>)).toMatchObject({ code: "closed", outcome: "unknown" });
    expect(await errorOf(alice.ask(BOB, {}))).toMatchObject({ code: "closed", outcome: "refused" });
    expect(await errorOf(alice.ask(BOB, {}, { signal: AbortSignal.abort() }))).toMatchObject({ outcome: "refused" });
  });

  test("ends when another connection takes its agent over", async () => {
    const asked = alice.ask(BOB, {});
    await next(bob);
    await alice.send(BOB, {});
    await stage.online("alice", stage.url);
    expect(await errorOf(asked)).toMatchObject({ code: "superseded", outcome: "unknown" });
  });
});

describe("What is no reply to a question is a delivery like any other", () => {
  test("from another agent, in its task", async () => {
    const asked = alice.ask(BOB, {});
    const question = await next(bob);
    const carol = await stage.online("carol", stage.url);
    await carol.send("agent://alice", { forged: true }, { type: "message.reply", taskId: question.envelope.task_id });
    await until("it came", () => heard.deliveries.length === 1);
    await question.reply({ forged: false });
    expect((await asked).payload).toEqual({ forged: false });
    expect(heard.deliveries).toMatchObject([{ from: "agent://carol", payload: { forged: true } }]);
  });

  test("the second one, and one of another task or type", async () => {
    const asked = alice.ask(BOB, {});
    const question = await next(bob);
    const { task_id: taskId } = question.envelope;
    await bob.send("agent://alice", { n: 1 }, { type: "message.reply", taskId: "another" });
    await bob.send("agent://alice", { n: 2 }, { type: "message.reply" });
    await bob.send("agent://alice", { n: 3 }, { type: "message.send", taskId });
    await question.reply({ n: 4 });
    await question.reply({ n: 5 });
    expect((await asked).payload).toEqual({ n: 4 });
    expect((await untilMarked()).map(({ payload }) => payload.n)).toEqual([1, 2, 3, 5]);
  });
});

describe("A reply of an agent whose key is known", () => {
  let proxied: Connector;

  /** Alice trusts bob's key, and what is delivered to her is changed on the way. */
  async function aliceBehind(change: (envelope: Frame) => object): Promise<Promise<Delivery>> {
    const proxy = await stage.proxy(stage.url);
    proxied = await stage.online("alice", proxy.url, { trust: { [BOB]: [stage.agent("bob-hmac").trusted] } });
    heard = record(proxied);
    const asked = proxied.ask(BOB, {});
    const question = await next(bob);
    proxy.toAgent = (frame) =>
      frame.frame === "deliver" ? { ...frame, envelope: { ...frame.envelope, ...change(frame.envelope) } } : frame;
    await question.reply({ n: 1 });
    await until("it came", () => heard.deliveries.length + heard.errors.length === 1);
    proxy.toAgent = (frame) => frame;
    await question.reply({ n: 2 });
    return asked;
  }

  test("does not count when its signature is invalid", async () => {
    expect((await aliceBehind(() => ({ payload: { n: 7 } }))).payload).toEqual({ n: 2 });
    expect(heard.errors).toMatchObject([{ code: "forged_delivery" }]);
  });

  test("does not count under a key that nobody vouches for", async () => {
    const change = () => ({ payload: { n: 7 }, key_id: testAgent("other").keyId });
    expect(await aliceBehind(change)).toMatchObject({ payload: { n: 2 }, verified: "agent" });
    expect(heard.deliveries).toMatchObject([{ verified: "unverified", payload: { n: 7 } }]);
  });
});

describe("A connection that is lost", () => {
  test("before the question was acked: it goes out again as it was, is received once, and gets its reply", async () => {
    const proxy = await stage.proxy(stage.url);
    alice = await stage.online("alice", proxy.url);
    const questions = record(bob).deliveries;
    proxy.cutAtAck();
    const asked = alice.ask(BOB, {});
    await alice.send(BOB, { marker: true });
    await until("the marker came", () => questions.some(({ payload }) => payload.marker === true));
    expect(questions).toHaveLength(2);
    await questions[0]?.reply({ n: 1 });
    expect((await asked).payload).toEqual({ n: 1 });
    const copies = proxy.sent.filter(({ task_id }) => task_id !== undefined);
    expect(copies).toHaveLength(2);
    expect(copies[0]).toEqual(copies[1]);
  });

  test("after it was acked does not end the question", async () => {
    const proxy = await stage.proxy(stage.url);
    alice = await stage.online("alice", proxy.url);
    const asked = alice.ask(BOB, {});
    const question = await next(bob);
    await alice.send(BOB, {});
    proxy.cut();
    await untilState(alice, "reconnecting");
    await untilState(alice, "online");
    await question.reply({ n: 1 });
    expect((await asked).payload).toEqual({ n: 1 });
  });

  test("leaves open whether a target got the question that is gone when the repeat is acked", async () => {
    const proxy = await stage.proxy(stage.url);
    alice = await stage.online("alice", proxy.url);
    proxy.cutAtAck(() => {
      proxy.refusesWith = 503;
    });
    const timeIsOver = holdWaits();
    const asked = errorOf(alice.ask(BOB, {}, { timeoutMs: LONG_MS }));
    await next(bob);
    await bob.close();
    let repeat: Frame | undefined;
    proxy.toAgent = (frame) => {
      if (frame.duplicate) repeat = frame;
      return frame;
    };
    proxy.refusesWith = undefined;
    await until("the repeat is acked", () => repeat !== undefined);
    await alice.send(BOB, {});
    timeIsOver();
    expect(await asked).toMatchObject({ code: "timeout", outcome: "unknown" });
    expect(repeat).toMatchObject({ target_delivery: { can_deliver_realtime: false } });
  });
});

describe("delivery.reply", () => {
  test("names the task of the message, else its id", async () => {
    await alice.send(BOB, {}, { taskId: "t-1" });
    await (await next(bob)).reply({});
    const { envelopeId } = await alice.send(BOB, {});
    await (await next(bob)).reply({});
    await until("both came", () => heard.deliveries.length === 2);
    const belonging = heard.deliveries.map(({ type, envelope }) => [type, envelope.task_id]);
    expect(belonging).toEqual([
      ["message.reply", "t-1"],
      ["message.reply", envelopeId],
    ]);
  });

  test("replies to no reply and to nothing of a session, so that two who always reply come to an end", async () => {
    echo(alice);
    echo(bob);
    await alice.send(BOB, { n: 1 });
    await until("the reply came", () => heard.deliveries.length === 1);
    const [reply] = heard.deliveries as [Delivery];
    expect(await errorOf(reply.reply({}))).toMatchObject({ code: "not_answerable", outcome: "refused" });
    const questions = record(bob).deliveries;
    await alice.requestSession(BOB, { purpose: "talk" });
    await until("the request came", () => questions.length === 1);
    expect(await errorOf((questions[0] as Delivery).reply({}))).toMatchObject({ code: "not_answerable" });
    expect(await untilMarked()).toHaveLength(1);
  });

  test("is no part of a copy of the delivery", async () => {
    await alice.send(BOB, { n: 1 });
    const delivery = await next(bob);
    expect(Object.keys(structuredClone(delivery))).toEqual(Object.keys(delivery));
    expect(structuredClone(delivery)).not.toHaveProperty("reply");
  });
});
