import { describe, expect, jest, test } from "@jest/globals";
import { fc } from "../../test/support/fast-check.ts";
import { until } from "../../test/support/until.ts";
import { errorOf } from "./kit.ts";
import { TestWriter, useSendQueue } from "./send-queue-scene.ts";

const scene = useSendQueue();
const { add, connect, refuse } = scene;

describe("When the key of an envelope has ended", () => {
  test("what may have been accepted is not signed anew", async () => {
    const first = await connect();
    const answer = add("a");
    await until("it went out", () => first.ids.length === 1);
    expect(scene.sendQueue.needs(scene.signer.keyId)).toBe(true);
    scene.sendQueue.pause();
    const second = new TestWriter(scene.signer, 1000);
    second.ended.add(scene.signer.keyId);
    scene.sendQueue.resume(second);
    expect(await errorOf(answer)).toMatchObject({ code: "outcome_unknown", outcome: "unknown" });
    expect([second.ids, scene.sendQueue.needs(scene.signer.keyId)]).toEqual([[], false]);
  });

  test("what was refused for the moment needs it too, and is not signed anew either", async () => {
    const writer = await connect();
    const answer = add("a");
    await until("it went out", () => writer.ids.length === 1);
    refuse("a", "rate_limited");
    expect(scene.sendQueue.needs(scene.signer.keyId)).toBe(true);
    writer.ended.add(scene.signer.keyId);
    expect(await errorOf(answer)).toMatchObject({ code: "rate_limited", outcome: "refused" });
    expect([writer.ids, scene.sendQueue.needs(scene.signer.keyId)]).toEqual([["a"], false]);
  });
});

/** What a relay that lies, and time, can do to three sends. */
const HAPPENINGS: Readonly<Record<string, (writer: TestWriter, id: string) => void>> = {
  "a lie about the time": () => scene.clock.measure(Date.now() + 290_000),
  another: () => scene.clock.measure(Date.now() - 3_600_000),
  "time goes by": () => jest.spyOn(Date, "now").mockReturnValue(Date.now() + 200_000),
  "the clock is refused": (_, id) => refuse(id, "clock_skew"),
  "the rate is": (_, id) => refuse(id, "rate_limited"),
  "the agent is": (_, id) => refuse(id, "not_registered"),
  "an outage": (_, id) => refuse(id, "unavailable"),
  "the key ends": (writer) => void writer.ended.add(scene.signer.keyId),
  "a lost connection": () => scene.sendQueue.pause(),
};

test("Whatever a relay answers and whatever time it tells, an id goes out with one signature", async () => {
  const happening = fc.tuple(fc.constantFrom(...Object.keys(HAPPENINGS)), fc.constantFrom("a", "b", "c"));
  await fc.assert(
    fc.asyncProperty(fc.array(happening, { maxLength: 12 }), async (happenings) => {
      scene.renewQueue();
      const before = ["a", "b"].map((id) => add(id));
      const writers = [await connect()];
      for (const [what, id] of happenings) {
        await scene.signer.sign("{}");
        HAPPENINGS[what]?.(writers.at(-1) as TestWriter, id);
        // A new connection ends every wait.
        writers.push(await connect());
      }
      void add("c");
      await scene.signer.sign("{}");
      scene.end();
      await Promise.allSettled(before);
      jest.restoreAllMocks();
      const texts = new Set(writers.flatMap((writer) => writer.texts));
      const ids = writers.flatMap((writer) => writer.ids);
      expect(texts.size).toBe(new Set(ids).size);
    }),
    { numRuns: 100 },
  );
});
