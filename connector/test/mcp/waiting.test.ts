import { describe, expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import type { LateAgent } from "../../src/mcp/late-agent.ts";
import { MessageQueue } from "../../src/mcp/message-queue.ts";
import { serve } from "../../src/mcp/server.ts";
import { withReply } from "../../src/replies.ts";
import type { Delivery } from "../../src/types.ts";
import { shared } from "../fixture.ts";
import { McpStage } from "./kit.ts";

/** What waits for a model, and a model that waits. */

const LONG_MS = 60_000;
const never = new AbortController().signal;

function delivery(id: string, from = "agent://bob"): Delivery {
  const payload = {};
  const envelope = { id, type: "message.send", from, payload, ts: 0, key_id: "bob-1", sig: "" };
  const { type } = envelope;
  return withReply({ envelope, from, type, payload, verified: "unverified", sealed: false, receivedAt: 0 }, () =>
    Promise.reject(),
  );
}

function filled(max: number, ...ids: readonly string[]): MessageQueue<Delivery> {
  const queue = new MessageQueue<Delivery>(max, ({ from }) => from);
  for (const id of ids) queue.add(delivery(id));
  return queue;
}

async function take(queue: MessageQueue<Delivery>, max = 10, timeoutMs = 0, signal = never) {
  const { items, putBack: _, ...rest } = await queue.take(max, timeoutMs, signal);
  return { ids: items.map(({ envelope }) => envelope.id), ...rest };
}

describe("The queue of messages", () => {
  test("drops nothing of others for the sender with the most", async () => {
    const queue = filled(2);
    queue.add(delivery("alice's", "agent://alice"));
    for (const id of ["1", "2", "3"]) queue.add(delivery(id));
    expect(await take(queue)).toEqual({ ids: ["alice's", "3"], waiting: 0, dropped: 2 });
  });

  test("hands out what is there in order, each once, and says how many still wait", async () => {
    const queue = filled(10, "a", "b", "c");
    expect(await take(queue, 2)).toEqual({ ids: ["a", "b"], waiting: 1, dropped: 0 });
    expect(await take(queue, 2)).toEqual({ ids: ["c"], waiting: 0, dropped: 0 });
    expect(await take(queue)).toEqual({ ids: [], waiting: 0, dropped: 0 });
  });

  test("loses the oldest when it is full, and says once how many were lost, here or before", async () => {
    const queue = filled(2, "a", "b", "c", "d");
    queue.countDropped();
    expect(await take(queue)).toEqual({ ids: ["c", "d"], waiting: 0, dropped: 3 });
    expect(await take(queue)).toMatchObject({ dropped: 0 });
  });

  test("hands out what comes while a call waits, to one of the calls that wait", async () => {
    const queue = filled(10);
    const [first, second] = [take(queue, 10, LONG_MS), take(queue, 10, LONG_MS)];
    expect(queue.isAwaited).toBe(true);
    queue.add(delivery("a"));
    expect((await first).ids).toEqual(["a"]);
    queue.add(delivery("b"));
    expect((await second).ids).toEqual(["b"]);
    expect(queue.isAwaited).toBe(false);
  });

  test("takes nothing away for a call that was cancelled", async () => {
    const queue = filled(10);
    const cancel = new AbortController();
    const waiting = take(queue, 10, LONG_MS, cancel.signal);
    cancel.abort();
    queue.add(delivery("a"));
    await expect(waiting).rejects.toBe(cancel.signal.reason);
    expect((await take(queue)).ids).toEqual(["a"]);
    expect(queue.isAwaited).toBe(false);
  });

  test("hands out what was put back in the order in which it came, before what came later, with what was lost before", async () => {
    const queue = filled(3, "a", "b", "c", "d");
    const [first, second] = [await queue.take(1, 0, never), await queue.take(1, 0, never)];
    second.putBack();
    first.putBack();
    expect(await take(queue)).toEqual({ ids: ["b", "c", "d"], waiting: 0, dropped: 1 });
  });

  test("hands what was put back to a call that waits", async () => {
    const queue = filled(10, "a");
    const taken = await queue.take(1, 0, never);
    const waiting = take(queue, 10, LONG_MS);
    taken.putBack();
    expect((await waiting).ids).toEqual(["a"]);
  });

  test("lets nobody wait after its end, but hands out what is left", async () => {
    const queue = filled(10);
    const waiting = take(queue, 10, LONG_MS);
    queue.end();
    expect((await waiting).ids).toEqual([]);
    queue.add(delivery("a"));
    expect((await take(queue, 10, LONG_MS)).ids).toEqual(["a"]);
    expect((await take(queue, 10, LONG_MS)).ids).toEqual([]);
  });
});

describe("A client", () => {
  type Transport = Parameters<typeof serve>[1];

  /** A server with a client that reads when it is let to. */
  async function unread(isBehind?: () => boolean) {
    const waiting: (() => void)[] = [];
    const transport = {
      start: async () => {},
      close: async () => {},
      send: () => new Promise<void>((read) => waiting.push(read)),
    } as unknown as Transport;
    let arrive = () => {};
    const agent = {
      onDelivery: (listener: (agent: object) => void) => {
        arrive = () => listener({ queue: { isAwaited: false, size: 1 } });
        return () => {};
      },
    } as unknown as LateAgent;
    await serve(agent, transport, "1.0.0", undefined, isBehind);
    return { waiting, arrive: () => arrive() };
  }

  /** What was begun has come to an end, but for what waits for the client. */
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  test("that does not read has one notification kept, however many messages come", async () => {
    const { waiting, arrive } = await unread();
    for (let n = 0; n < 100; n += 1) arrive();
    await settled();
    expect(waiting).toHaveLength(1);
    waiting[0]?.();
    await settled();
    arrive();
    await settled();
    expect(waiting).toHaveLength(2);
  });

  test("is told nothing while its stream is behind, and again after it", async () => {
    let isBehind = true;
    const { waiting, arrive } = await unread(() => isBehind);
    arrive();
    await settled();
    expect(waiting).toHaveLength(0);
    isBehind = false;
    arrive();
    await settled();
    expect(waiting).toHaveLength(1);
  });
});

describe("A model that waits", () => {
  const ALICE = "agent://alice";
  const stage = shared(new McpStage("alice", "bob"));

  test("gets a message when it comes, and each once", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    const waiting = alice.call("wait_for_messages", { timeout_seconds: 50 });
    await alice.untilRead();
    await bob.send(ALICE, { n: 1 });
    expect(await waiting).toMatchObject({ messages: [{ payload: { n: 1 } }], waiting: 0, dropped: 0 });
    expect(await alice.call("wait_for_messages", { timeout_seconds: 0 })).toMatchObject({ messages: [] });
    expect(alice.notifications).toEqual([]);
  });

  test("gets at most as many as it asked for, and is told how many are left; its host heard of each", async () => {
    const alice = await stage.onlineHost("alice", stage.url);
    const bob = await stage.online("bob", stage.url);
    for (const n of [1, 2, 3]) {
      await bob.send(ALICE, { n });
      await until("the host heard of it", () => alice.notifications.length === n);
    }
    expect(alice.notifications.at(-1)).toEqual({ event: "message_arrived", waiting: 3 });
    expect(await alice.call("my_status")).toMatchObject({ agent_id: ALICE, waiting: 3, dropped: 0 });
    const first = await alice.call("wait_for_messages", { max: 2 });
    expect(first).toMatchObject({ messages: [{ payload: { n: 1 } }, { payload: { n: 2 } }], waiting: 1 });
    expect(await alice.call("wait_for_messages")).toMatchObject({ messages: [{ payload: { n: 3 } }], waiting: 0 });
  });
});
