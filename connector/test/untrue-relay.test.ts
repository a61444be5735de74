import { describe, expect, test } from "@jest/globals";
import { ed25519Key, type Frame, signed } from "../../test/support/agent.ts";
import { until } from "../../test/support/until.ts";
import { MAX_SENDERS } from "../src/limits.ts";
import { next } from "./kit.ts";
import { useVerificationScene } from "./verification-scene.ts";

const scene = useVerificationScene();
const { stage, bobTrusts, deliver, expectDropped, trustAlice } = scene;

describe("A relay that errs", () => {
  test("and delivers another's envelope is not believed", async () => {
    await bobTrusts({});
    deliver(() => ({ to: "agent://carol" }));
    await expectDropped("misdirected_delivery");
  });

  test("and delivers twice is heard once; another id under the same key counts anew", async () => {
    await bobTrusts({ trust: trustAlice() });
    const frames: Frame[] = [];
    scene.proxy.toAgent = (frame) => (frame.frame === "deliver" ? frames[frames.push(frame) && 0] : frame);
    await scene.alice.send("agent://bob", { n: 1 });
    await scene.alice.send("agent://bob", { n: 2 });
    await until("the first went out twice", () => frames.length === 2);
    scene.proxy.toAgent = (frame) => frame;
    await scene.alice.send("agent://bob", { n: 3 });
    await until("the last is delivered", () => scene.heard.deliveries.at(-1)?.payload.n === 3);
    expect(scene.heard.deliveries.map(({ payload }) => payload.n)).toEqual([1, 3]);
  });

  test.each([
    ["an envelope without members", { frame: "deliver", envelope: {} }],
    ["an envelope that is none", { frame: "deliver", envelope: [1] }],
    ["a payload that is no object", { frame: "deliver", envelope: { payload: [] } }],
  ])("and delivers %s is told apart", async (_, frame) => {
    await bobTrusts({});
    scene.proxy.toAgent = (real) => (real.frame === "deliver" ? frame : real);
    await scene.alice.send("agent://bob", {});
    await until("it is reported", () => scene.heard.errors.length > 0);
    expect(scene.heard.errors).toMatchObject([{ code: "malformed_delivery" }]);
  });

  test.each([
    ["no object", 7],
    ["no kind that is known", { frame: "later" }],
    ["a notice of no kind that is known", { frame: "notice", notice: "later" }],
    ["a notice without its sessions", { frame: "notice", notice: "pending_sessions" }],
    ["another without its sessions", { frame: "notice", notice: "decided_sessions" }],
    ["an ack of nothing", { frame: "ack" }],
  ])("and sends a frame that is %s breaks nothing", async (_, frame) => {
    await bobTrusts({});
    scene.proxy.toAgent = (real) => (real.envelope?.payload.n === 1 ? frame : real);
    await scene.alice.send("agent://bob", { n: 1 });
    await scene.alice.send("agent://bob", { n: 2 });
    expect((await next(scene.bob)).payload).toEqual({ n: 2 });
    expect(scene.heard.errors).toEqual([]);
  });
});

describe("A relay that lies", () => {
  const MINUTE_MS = 60_000;
  const YEAR_MS = 365 * 24 * 60 * MINUTE_MS;
  const SESSION = `ses_${"0".repeat(26)}`;

  /** Alice signed it so long ago; the relay delivers it in place of what she sends now. */
  function deliverSignedBefore(ms: number, content: object = { type: "message.send", payload: { old: true } }): void {
    const { key, keyId, agent } = stage.agent("alice");
    const signer = ed25519Key(keyId, (key as { privateKey: string }).privateKey);
    const envelope = signed(signer, { from: agent, to: "agent://bob", ts: Date.now() - ms, ...content });
    scene.proxy.toAgent = (frame) => (frame.frame === "deliver" ? { ...frame, envelope } : frame);
  }

  /** The relay tells a time of its own with a refusal. */
  async function tellTime(offMs: number): Promise<void> {
    scene.proxy.toAgent = (frame) =>
      frame.frame === "deliver" ? { frame: "error", code: "unavailable", server_time: Date.now() + offMs } : frame;
    await scene.alice.send("agent://bob", {});
    await until("the time was told", () => scene.heard.errors.splice(0).length > 0);
  }

  test.each([
    ["a year", YEAR_MS],
    ["eleven minutes", 11 * MINUTE_MS],
    ["minus eleven minutes", -11 * MINUTE_MS],
  ])("and delivers what was signed %s ago is not believed", async (_, age) => {
    await bobTrusts({ trust: trustAlice() });
    deliverSignedBefore(age);
    await expectDropped("stale_delivery");
    expect([...scene.bob.dropped]).toEqual([["stale_delivery", 1]]);
  });

  test.each([
    ["an id of one is its session", SESSION, SESSION],
    ["a text of any other form is not remembered", "x".repeat(20_000), undefined],
  ])("and of a decision, %s", async (_, session_id, sessionId) => {
    await bobTrusts({ trust: trustAlice() });
    deliverSignedBefore(0, { type: "session.approve", payload: { session_id } });
    await scene.alice.send("agent://bob", {});
    expect((await next(scene.bob)).sessionId).toBe(sessionId);
  });

  test("may deliver what was signed nine minutes ago, or anything where no limit is wanted", async () => {
    await bobTrusts({ trust: trustAlice() });
    deliverSignedBefore(9 * MINUTE_MS);
    await scene.alice.send("agent://bob", {});
    expect(await next(scene.bob)).toMatchObject({ verified: "agent", payload: { old: true } });
    await scene.bob.close();
    await bobTrusts({ trust: trustAlice(), maxDeliveryAgeMs: 0 });
    deliverSignedBefore(YEAR_MS);
    await scene.alice.send("agent://bob", {});
    expect(await next(scene.bob)).toMatchObject({ verified: "agent", payload: { old: true } });
  });

  test.each([
    ["a year", YEAR_MS],
    ["sixteen minutes", 16 * MINUTE_MS],
  ])("about the time cannot make recent what was signed %s ago", async (_, age) => {
    await bobTrusts({ trust: trustAlice() });
    await tellTime(-age);
    deliverSignedBefore(age);
    await expectDropped("clock_untrusted");
  });

  test("about the time by as much as a clock may be off makes nothing old recent", async () => {
    await bobTrusts({ trust: trustAlice() });
    await tellTime(-290_000);
    deliverSignedBefore(15 * MINUTE_MS);
    await expectDropped("stale_delivery");
  });

  test("about the time, so that an envelope is not verified, cannot have it verified later", async () => {
    await bobTrusts({ trust: trustAlice() });
    await tellTime(-6 * MINUTE_MS);
    let kept: Frame | undefined;
    scene.proxy.toAgent = (frame) => {
      if (frame.frame === "deliver") kept = frame;
      return frame;
    };
    await scene.alice.send("agent://bob", { n: 1 });
    expect(await next(scene.bob)).toMatchObject({ verified: "unverified", payload: { n: 1 } });
    await tellTime(0);
    scene.proxy.toAgent = (frame) => frame;
    scene.proxy.tell(kept as Frame);
    await scene.alice.send("agent://bob", { n: 2 });
    expect(await next(scene.bob)).toMatchObject({ verified: "agent", payload: { n: 2 } });
    expect(scene.heard.deliveries.map(({ payload }) => payload.n)).toEqual([1, 2]);
  });

  test("and makes up senders without number makes nothing old that a pinned agent sends", async () => {
    await bobTrusts({ trust: trustAlice(), maxInbox: 2 * MAX_SENDERS });
    for (let n = 0; n <= MAX_SENDERS; n += 1) {
      const made = { id: "1", type: "message.send", from: `agent://stranger-${n}`, to: "agent://bob", payload: {} };
      const envelope = { ...made, ts: Date.now() + 5 * MINUTE_MS, key_id: "none", sig: "none" };
      scene.proxy.tell({ frame: "deliver", envelope });
    }
    await scene.alice.send("agent://bob", { n: 1 });
    await until("alice is heard", () => scene.heard.deliveries.at(-1)?.payload.n === 1);
    expect([scene.heard.deliveries.length, scene.heard.errors]).toEqual([MAX_SENDERS + 2, []]);
  });

  test("and delivers an id of a sender again, under another key, is heard once", async () => {
    await bobTrusts({});
    await scene.alice.send("agent://bob", { n: 1 });
    const { envelope } = await next(scene.bob);
    let passed = 0;
    scene.proxy.toAgent = (frame) => {
      if (frame.frame !== "deliver") return frame;
      passed += 1;
      return { ...frame, envelope: { ...envelope, key_id: "another", payload: { n: 2 } } };
    };
    await scene.alice.send("agent://bob", {});
    await until("it went out again", () => passed === 1);
    scene.proxy.toAgent = (frame) => frame;
    await scene.alice.send("agent://bob", { n: 3 });
    await until("the last is delivered", () => scene.heard.deliveries.at(-1)?.payload.n === 3);
    expect(scene.heard.deliveries.map(({ payload }) => payload.n)).toEqual([1, 3]);
  });
});
