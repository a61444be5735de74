import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { SharedRead, SharedReads } from "../src/window-reader.ts";

const KEPT_MS = 250;
/** Reads that were sent, to be answered by the test. */
let sent: PromiseWithResolvers<number>[];
let read: SharedRead<number>;

beforeEach(() => {
  jest.useFakeTimers();
  sent = [];
  read = new SharedRead(() => {
    const answer = Promise.withResolvers<number>();
    sent.push(answer);
    return answer.promise;
  }, KEPT_MS);
});
afterEach(() => {
  jest.useRealTimers();
});

describe("a shared read", () => {
  test("is sent once for all who ask while it is under way", async () => {
    const asked = [read.get(), read.get(), read.get()];
    sent[0]?.resolve(7);
    expect(await Promise.all(asked)).toEqual([7, 7, 7]);
    expect(sent).toHaveLength(1);
  });

  test("is kept until its time has passed since it was sent, not since it was answered", async () => {
    const first = read.get();
    jest.advanceTimersByTime(KEPT_MS - 1);
    sent[0]?.resolve(7);
    expect(await first).toBe(7);
    expect(await read.get()).toBe(7);
    jest.advanceTimersByTime(1);
    const later = read.get();
    expect(sent).toHaveLength(2);
    sent[1]?.resolve(8);
    expect(await later).toBe(8);
  });

  test("that is not answered in this time is not waited for by who asks later", async () => {
    const slow = read.get();
    jest.advanceTimersByTime(KEPT_MS);
    const later = read.get();
    sent[1]?.resolve(8);
    expect(await later).toBe(8);
    sent[0]?.resolve(7);
    expect(await slow).toBe(7);
    expect(await read.get()).toBe(8);
  });

  test("that failed is told to who waits for it, and not kept", async () => {
    const asked = [read.get(), read.get()];
    sent[0]?.reject(new Error("unavailable"));
    for (const answer of asked) await expect(answer).rejects.toThrow("unavailable");
    const next = read.get();
    sent[1]?.resolve(8);
    expect(await next).toBe(8);
  });

  test("that was overtaken does not drop the newer one when it fails", async () => {
    const slow = read.get();
    jest.advanceTimersByTime(KEPT_MS);
    const newer = read.get();
    sent[0]?.reject(new Error("unavailable"));
    await expect(slow).rejects.toThrow("unavailable");
    sent[1]?.resolve(8);
    expect(await Promise.all([newer, read.get()])).toEqual([8, 8]);
    expect(sent).toHaveLength(2);
  });

  test("is sent afresh once it was forgotten", async () => {
    void read.get();
    read.forget();
    void read.get();
    expect(sent).toHaveLength(2);
  });
});

describe("shared reads of many keys", () => {
  test("are one for each key, and no more are kept than the limit says: the first key asked for gives way", async () => {
    const asked: string[] = [];
    const reads = new SharedReads(
      async (key) => {
        asked.push(key);
        return key.length;
      },
      { keptMs: KEPT_MS, most: 2 },
    );
    expect(await Promise.all([reads.get("a"), reads.get("bb"), reads.get("a")])).toEqual([1, 2, 1]);
    expect(asked).toEqual(["a", "bb"]);
    await reads.get("ccc");
    expect(reads.size).toBe(2);
    await reads.get("bb");
    await reads.get("a");
    expect(asked).toEqual(["a", "bb", "ccc", "a"]);
  });
});
