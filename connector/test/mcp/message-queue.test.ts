import { describe, expect, test } from "@jest/globals";
import { MessageQueue } from "../../src/mcp/message-queue.ts";
import { withReply } from "../../src/replies.ts";
import type { Delivery } from "../../src/types.ts";

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
