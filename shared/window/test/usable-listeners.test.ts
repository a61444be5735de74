import { expect, test } from "@jest/globals";
import { until } from "../../../test/support/until.ts";
import { UsableListeners } from "../src/redis/usable-listeners.ts";

test("What fails keeps nobody else from being told, be it at once or later, and all are told again until it holds", async () => {
  const done: number[] = [];
  const told = { before: 0, atOnce: 0, later: 0, after: 0 };
  const listeners = new UsableListeners(() => done.push(told.after));
  listeners.add(async () => {
    told.before += 1;
  });
  listeners.add(() => {
    told.atOnce += 1;
    if (told.atOnce === 1) throw new Error("at once");
    return Promise.resolve();
  });
  listeners.add(async () => {
    told.later += 1;
    if (told.later < 3) throw new Error("later");
  });
  listeners.add(async () => {
    told.after += 1;
  });
  await listeners.run();
  expect(told).toEqual({ before: 1, atOnce: 1, later: 1, after: 1 });
  await until("all of it holds", () => done.length > 0);
  listeners.stop();
  expect(done).toEqual([3]);
});

test("What comes back while they run has them run once more, after that", async () => {
  const { promise: mayEnd, resolve: letEnd } = Promise.withResolvers<void>();
  const order: string[] = [];
  const listeners = new UsableListeners(() => order.push("done"));
  listeners.add(async () => {
    order.push("begins");
    await mayEnd;
    order.push("ends");
  });
  const first = listeners.run();
  await listeners.run();
  await listeners.run();
  letEnd();
  await first;
  expect(order).toEqual(["begins", "ends", "begins", "ends", "done"]);
});
