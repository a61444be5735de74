import { setImmediate } from "node:timers/promises";
import { describe, expect, jest, test } from "@jest/globals";
import { fc } from "../../test/support/fast-check.ts";
import { until } from "../../test/support/until.ts";
import { RelayError } from "../src/errors.ts";
import { errorOf } from "./kit.ts";
import { TestWriter, useSendQueue, visitsIn } from "./send-queue-scene.ts";
import { holdWaits, LONG_MS, Waits } from "./times.ts";

const scene = useSendQueue();
const { add, connect, ack, refuse } = scene;
/** A call that has more time than any hold. */
const PATIENT = { timeoutMs: 3 * LONG_MS };

describe("The send queue", () => {
  test("is bounded: one more is refused, and there is room again after an answer", async () => {
    const sends = Array.from({ length: 100 }, (_, n) => add(`${n}`));
    expect(await errorOf(add("one more"))).toMatchObject({ code: "queue_full", retry: "later", outcome: "refused" });
    const writer = await connect();
    await until("they go out", () => writer.texts.length > 0);
    ack("0");
    await sends[0];
    const next = add("now");
    await until("there is room for it", () => writer.texts.length === 65);
    for (let n = 1; n < 100; n += 1) ack(`${n}`);
    await until("it is out", () => writer.ids.includes("now"));
    ack("now");
    expect(await next).toMatchObject({ envelopeId: "now" });
  });

  test("has a bounded number of envelopes in flight", async () => {
    for (let n = 0; n < 100; n += 1) void add(`${n}`);
    const writer = await connect();
    await until("no more may be in flight", () => writer.texts.length === 64);
    await scene.signer.sign("{}");
    expect(writer.texts).toHaveLength(64);
    ack("7");
    await until("there is room for one", () => writer.texts.length === 65);
  });

  test("has no more in flight than the relay says, with whatever number of acks", async () => {
    for (let n = 0; n < 10; n += 1) void add(`${n}`);
    const writer = await connect(3);
    for (let n = 0; n < 7; n += 1) {
      await until("no more may be in flight", () => writer.texts.length === n + 3);
      await scene.signer.sign("{}");
      expect(writer.texts).toHaveLength(n + 3);
      ack(`${n}`);
    }
  });

  test("sends again what a lost connection left open, as it was signed and in order, before anything new", async () => {
    for (const id of ["a", "b", "c"]) void add(id);
    const lost = await connect();
    await until("they are out", () => lost.texts.length === 3);
    ack("b");
    scene.sendQueue.pause();
    void add("d");
    const writer = await connect();
    await until("they are out again", () => writer.texts.length === 3);
    expect(writer.ids).toEqual(["a", "c", "d"]);
    expect(writer.texts.slice(0, 2)).toEqual([lost.texts[0], lost.texts[2]]);
  });

  test("sends nothing to a target that is out of reach, then one envelope until it is answered, and all else at once", async () => {
    const waits = new Waits();
    for (const id of ["a", "b", "c"]) void add(id, PATIENT);
    const writer = await connect();
    await until("they are out", () => writer.texts.length === 3);
    for (const id of ["a", "b", "c"]) refuse(id, "unavailable", LONG_MS);
    void add("d", PATIENT);
    void scene.addTo("agent://carol", "to carol");
    await until("what goes to another is out", () => writer.texts.length === 4);
    waits.endBetween(LONG_MS, 2 * LONG_MS);
    await until("one is out again", () => writer.texts.length === 5);
    void scene.addTo("agent://carol", "marker");
    await until("what came later is out", () => writer.ids.includes("marker"));
    expect(writer.ids.slice(3)).toEqual(["to carol", "a", "marker"]);
    expect(writer.texts[4]).toBe(writer.texts[0]);
    ack("a");
    await until("the others are out", () => writer.texts.length === 9);
    expect(writer.ids.slice(6)).toEqual(["b", "c", "d"]);
  });

  test("sends what waits for a target on the next connection, whatever held that target on the last one", async () => {
    void add("a", PATIENT);
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    refuse("a", "unavailable", LONG_MS);
    const next = await connect();
    await until("it is out again", () => next.texts.length === 1);
    expect(next.ids).toEqual(["a"]);
  });

  test("leaves half of the places to the rest while targets are out of reach, however many", async () => {
    const waits = new Waits();
    for (let n = 0; n < 64; n += 1) void scene.addTo(`agent://lost${n}`, `${n}`, PATIENT);
    const writer = await connect();
    await until("they are out", () => writer.texts.length === 64);
    for (let n = 0; n < 64; n += 1) refuse(`${n}`, "unavailable", LONG_MS);
    waits.endBetween(LONG_MS, 2 * LONG_MS);
    await until("half are out again", () => writer.texts.length === 64 + 32);
    void add("to bob");
    await until("another is out", () => writer.texts.length === 64 + 33);
    expect(writer.ids.at(-1)).toBe("to bob");
  });

  test("holds a kind of envelopes that met the relay's rate, and what goes to their targets after them", async () => {
    const waits = new Waits();
    const request = (to: string, id: string) => void scene.addTo(to, id, { ...PATIENT, type: "session.request" });
    request("agent://bob", "to bob");
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    refuse("to bob", "rate_limited", LONG_MS);
    request("agent://carol", "to carol");
    void add("after it", PATIENT);
    void scene.addTo("agent://dave", "message");
    void scene.addTo("agent://dave", "decision", { type: "session.approve" });
    await until("all else is out", () => writer.texts.length === 3);
    await scene.signer.sign("{}");
    expect(writer.ids.slice(1)).toEqual(["message", "decision"]);
    waits.endBetween(LONG_MS, 2 * LONG_MS);
    await until("one is out again", () => writer.texts.length === 4);
    void scene.addTo("agent://eve", "marker");
    await until("what came later is out", () => writer.ids.includes("marker"));
    expect(writer.ids.slice(3)).toEqual(["to bob", "marker"]);
    ack("to bob");
    await until("the others are out", () => writer.texts.length === 7);
    expect(writer.ids.slice(5)).toEqual(["to carol", "after it"]);
  });

  test("rejects at once, with the code and the time to wait, what cannot be answered in its call's time", async () => {
    const request = (to: string, id: string) => errorOf(scene.addTo(to, id, { type: "session.request" }));
    const refused = request("agent://bob", "refused");
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    refuse("refused", "rate_limited", 60_000);
    const code = { code: "rate_limited", retry: "later", outcome: "refused" };
    expect(await refused).toMatchObject(code);
    const { retryAfterMs, hint, ...later } = await request("agent://carol", "later");
    expect(later).toMatchObject(code);
    expect(retryAfterMs).toBeGreaterThan(30_000);
    expect(hint).toContain(`${retryAfterMs} ms`);
    const lost = errorOf(add("lost"));
    await until("the message is out", () => writer.texts.length === 2);
    refuse("lost", "unavailable", 60_000);
    expect(await lost).toMatchObject({ code: "unavailable", outcome: "unknown", retryAfterMs: expect.any(Number) });
    expect(writer.ids).toEqual(["refused", "lost"]);
  });

  test("keeps what is called without a connection, whatever held its kind on the last one", async () => {
    const request = (to: string, id: string, timeoutMs: number) =>
      scene.addTo(to, id, { type: "session.request", timeoutMs });
    void request("agent://bob", "refused", PATIENT.timeoutMs);
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    refuse("refused", "rate_limited", LONG_MS);
    scene.sendQueue.pause();
    const later = request("agent://carol", "later", 30_000);
    const next = await connect();
    await until("both are out", () => next.texts.length === 2);
    ack("later");
    expect(await later).toMatchObject({ envelopeId: "later" });
  });

  test.each(["timeout", "aborted"])(
    "holds nothing for an envelope that ended with %s while it was tried",
    async (code) => {
      const waits = new Waits();
      const caller = new AbortController();
      const tried = errorOf(add("tried", { ...PATIENT, signal: caller.signal }));
      const writer = await connect();
      await until("it is out", () => writer.texts.length === 1);
      refuse("tried", "unavailable", LONG_MS);
      waits.endBetween(LONG_MS, 2 * LONG_MS);
      await until("it is out again", () => writer.texts.length === 2);
      if (code === "timeout") waits.endBetween(PATIENT.timeoutMs, PATIENT.timeoutMs);
      else caller.abort();
      await tried;
      for (const id of ["a", "b"]) void add(id);
      await until("both are out", () => writer.texts.length === 4);
    },
  );

  test.each(["unavailable", "rate_limited"])(
    "does as much for each of 800 targets in an outage (%s) as for each of 100",
    async (code) => {
      const few = await costOfOutage(100, code);
      expect(few).toBeGreaterThan(100);
      expect(await costOfOutage(800, code)).toBeLessThan(10 * few);
    },
  );

  test("rejects what is out again when its call's time is over, and was refused before, for that", async () => {
    const timeIsOver = holdWaits();
    const sent = errorOf(add("a", { timeoutMs: LONG_MS }));
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    refuse("a", "unavailable");
    await until("it is out again", () => writer.texts.length === 2);
    timeIsOver();
    expect(await sent).toMatchObject({ code: "unavailable", outcome: "unknown" });
  });

  test("holds up, for what waits to be sealed, what goes to the same agent after it, and nothing else", async () => {
    const key = Promise.withResolvers<void>();
    void scene.addTo("agent://stranger", "sealed", { drafted: key.promise });
    void scene.addTo("agent://stranger", "after it");
    void add("to bob");
    const writer = await connect();
    await until("the one to bob is out", () => writer.texts.length === 1);
    void add("to bob again");
    await until("the next to bob is out", () => writer.texts.length === 2);
    expect(writer.ids).toEqual(["to bob", "to bob again"]);
    key.resolve();
    await until("all are out", () => writer.texts.length === 4);
    expect(writer.ids.slice(2)).toEqual(["sealed", "after it"]);
  });

  test("lets what goes to an agent out when there is no key to seal to it before", async () => {
    const key = Promise.withResolvers<void>();
    const sealed = errorOf(scene.addTo("agent://stranger", "sealed", { drafted: key.promise }));
    void scene.addTo("agent://stranger", "after it");
    const writer = await connect();
    key.reject(new RelayError("recipient_unknown"));
    expect(await sealed).toMatchObject({ code: "recipient_unknown", outcome: "refused", envelopeId: "sealed" });
    await until("the other is out", () => writer.texts.length === 1);
    expect(writer.ids).toEqual(["after it"]);
  });

  test.each(["drafted", "signed", "written"])(
    "tells the caller of an envelope that cannot be %s why, and goes on with the next",
    async (step) => {
      const fault = new TypeError("a fault");
      const writer = await connect();
      if (step === "signed") jest.spyOn(scene.signer, "sign").mockRejectedValueOnce(fault);
      const write = jest.spyOn(writer, "send");
      if (step === "written") {
        write.mockImplementationOnce(() => {
          throw fault;
        });
      }
      const failed = add("a", step === "drafted" ? { drafted: Promise.reject(fault) } : {});
      void add("b");
      await expect(failed).rejects.toBe(fault);
      await until("the next is out", () => writer.texts.length === 1);
      expect(writer.ids).toEqual(["b"]);
    },
  );

  test("asks whether the agent is still here when the relay says it is not", async () => {
    void add("a");
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    refuse("a", "not_registered");
    expect(scene.notRegistered).toBe(1);
    await until("it is out again", () => writer.texts.length === 2);
  });

  test("takes an answer from whichever connection it comes, once, and an answer to nothing", async () => {
    const sent = add("a");
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    scene.sendQueue.pause();
    ack("a");
    ack("a");
    ack("never sent");
    refuse("never sent", "unavailable");
    expect(await sent).toMatchObject({ envelopeId: "a" });
  });
});

describe("A send that ends without an answer", () => {
  test.each(["timeout", "aborted"])("as %s says whether it went out", async (code) => {
    const timeIsOver = holdWaits();
    let caller = new AbortController();
    const terms = () => (code === "timeout" ? { timeoutMs: LONG_MS } : { signal: caller.signal });
    const end = () => (code === "timeout" ? timeIsOver() : caller.abort());
    const waits = errorOf(add("waits", terms()));
    end();
    expect(await waits).toMatchObject({ code, outcome: "refused", envelopeId: "waits" });
    caller = new AbortController();
    const sent = errorOf(add("sent", terms()));
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    expect(writer.ids).toEqual(["sent"]);
    end();
    expect(await sent).toMatchObject({ code, outcome: "unknown" });
  });

  test("as there was no connection all the time says so, and why as far as that is known", async () => {
    const unknown = await errorOf(add("a", { timeoutMs: 20 }));
    expect(unknown.message).toContain("There is no connection to the relay.");
    scene.failure = new RelayError("unreachable", { message: "Connection refused.", hint: "Start the relay." });
    expect(await errorOf(add("b", { timeoutMs: 20 }))).toMatchObject({
      code: "timeout",
      outcome: "refused",
      message: expect.stringContaining("Connection refused."),
      hint: "Start the relay.",
      cause: scene.failure,
    });
    const timeIsOver = holdWaits();
    const sent = errorOf(add("c", { timeoutMs: LONG_MS }));
    const writer = await connect();
    await until("it is out", () => writer.ids.includes("c"));
    scene.sendQueue.pause();
    timeIsOver();
    const { outcome, hint } = await sent;
    expect([outcome, hint]).toEqual(["unknown", new RelayError("timeout").hint]);
    scene.failure = undefined;
  });

  test("is not even taken when it was aborted before", async () => {
    const signal = AbortSignal.abort(new Error("why"));
    expect(await errorOf(add("a", { signal }))).toMatchObject({ code: "aborted", cause: { message: "why" } });
    const writer = await connect();
    void add("b");
    await until("the next is out", () => writer.texts.length === 1);
    expect(writer.ids).toEqual(["b"]);
  });

  test("as the relay failed has an unknown outcome", async () => {
    const sent = errorOf(add("a"));
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    refuse("a", "internal_error");
    expect(await sent).toMatchObject({ code: "internal_error", retry: "later", outcome: "unknown" });
  });

  test("is refused for good after an outage: whether it was accepted before is not known", async () => {
    const sent = errorOf(add("a"));
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    refuse("a", "unavailable");
    await until("it is out again", () => writer.texts.length === 2);
    refuse("a", "unknown_key");
    expect(await sent).toMatchObject({ code: "unknown_key", outcome: "unknown" });
  });

  test("and was refused for the moment until its time was over is refused for that", async () => {
    const sent = errorOf(add("a"));
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    refuse("a", "rate_limited");
    jest.spyOn(Date, "now").mockReturnValue(Date.now() + 400_000);
    expect(await sent).toMatchObject({ code: "rate_limited", retry: "later", outcome: "refused" });
    expect(writer.texts).toHaveLength(1);
  });

  test("and whose clock was refused goes out no more; the next is signed by the clock as it is then", async () => {
    const sent = errorOf(add("a"));
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    scene.clock.measure(Date.now() - 3_600_000);
    refuse("a", "clock_skew");
    expect(await sent).toMatchObject({ code: "clock_skew", retry: "fix", outcome: "refused" });
    void add("b");
    await until("the next is out", () => writer.texts.length === 2);
    const { id, ts } = JSON.parse(writer.texts[1] as string);
    expect([id, Math.abs(Date.now() - 3_600_000 - ts) < 60_000]).toEqual(["b", true]);
  });

  test("and whose clock was refused after an outage has an unknown outcome", async () => {
    const sent = errorOf(add("a"));
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    refuse("a", "unavailable");
    await until("it is out again", () => writer.texts.length === 2);
    refuse("a", "clock_skew");
    expect(await sent).toMatchObject({ code: "outcome_unknown", outcome: "unknown" });
  });

  test("for a reason of a later relay is refused with the relay's words", async () => {
    const sent = errorOf(add("a"));
    const writer = await connect();
    await until("it is out", () => writer.texts.length === 1);
    const words = { code: "too_loud", message: "Too loud.", hint: "Whisper.", retry: "later", errors: [] } as const;
    scene.sendQueue.refuse({ frame: "error", envelopeId: "a", retryAfterMs: 1, serverTime: undefined, ...words });
    expect(await sent).toMatchObject({
      code: "refused",
      message: "Too loud.",
      hint: "Whisper.",
      retry: "later",
      retryAfterMs: 1,
    });
  });
});

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

/** Of envelopes that are refused and go out again, until half of them have an ack and the others are aborted. */
async function costOfOutage(targets: number, code: string): Promise<number> {
  scene.renewQueue(targets);
  const waits = new Waits();
  const caller = new AbortController();
  const terms = { ...PATIENT, signal: caller.signal };
  const refused = new Set<string>();
  const cost = await visitsIn(async () => {
    jest
      .spyOn(scene.signer, "sign")
      .mockImplementation(async (draft) => ({ text: `${draft}}`, ts: Date.now(), keyId: "" }));
    const writer = await connect();
    const sends = Array.from({ length: targets }, (_, n) => errorOf(scene.addTo(`agent://x${n}`, `${n}`, terms)));
    let rounds = 0;
    for (let answers = 0; answers - refused.size < targets / 2; ) {
      await setImmediate();
      const text = writer.texts[answers];
      if (text === undefined) {
        waits.endBetween(LONG_MS, 2 * LONG_MS);
        rounds += 1;
        expect(rounds).toBeLessThan(targets);
        continue;
      }
      answers += 1;
      const { id } = JSON.parse(text);
      if (refused.has(id)) ack(id);
      else refuse(id, code, LONG_MS);
      refused.add(id);
    }
    caller.abort();
    await Promise.all(sends);
  });
  jest.restoreAllMocks();
  return cost;
}
