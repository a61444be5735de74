import { beforeEach, describe, expect, test } from "@jest/globals";
import { ed25519Key, type Frame, signed } from "../../test/support/agent.ts";
import { HttpClient } from "../../test/support/http.ts";
import { until } from "../../test/support/until.ts";
import type { Connector, ConnectorOptions } from "../src/index.ts";
import { MAX_SENDERS } from "../src/limits.ts";
import { shared } from "./fixture.ts";
import { next, record, testAgent, WholeStage } from "./kit.ts";
import type { WireProxy } from "./wire-proxy.ts";

const stage = shared(new WholeStage("alice", "alice.two-hmac", "bob"));
let proxy: WireProxy;
let alice: Connector;
let bob: Connector;
let heard: ReturnType<typeof record>;

beforeEach(async () => {
  proxy = await stage.proxy(stage.url);
  alice = await stage.online("alice", stage.url);
});

async function bobTrusts(options: Partial<ConnectorOptions>, url = proxy.url): Promise<void> {
  bob = await stage.online("bob", url, options);
  heard = record(bob);
}

/** The relay, or whoever stands before it, changes what it delivers. */
function deliver(change: (envelope: Frame) => object): void {
  proxy.toAgent = (frame) =>
    frame.frame === "deliver" ? { ...frame, envelope: { ...frame.envelope, ...change(frame.envelope) } } : frame;
}

async function expectDropped(code: string): Promise<void> {
  await alice.send("agent://bob", { n: 1 });
  await until("it is dropped", () => heard.errors.length > 0);
  expect(heard.errors).toMatchObject([{ code, envelopeId: expect.any(String) }]);
  expect(heard.deliveries).toEqual([]);
}

const trustAlice = () => ({ "agent://alice": [stage.agent("alice").trusted] });

describe("A delivery from an agent whose key is given", () => {
  test.each([
    ["payload", () => ({ payload: { n: 2 } })],
    ["type", () => ({ type: "message.other" })],
    ["task", () => ({ task_id: "other" })],
    ["time", ({ ts }: Frame) => ({ ts: ts + 1 })],
    ["id", () => ({ id: "other" })],
    ["signature", ({ sig }: Frame) => ({ sig: `${sig.slice(1)}A` })],
    ["signature's alphabet", ({ sig }: Frame) => ({ sig: `${sig}=` })],
    ["signature's algorithm", () => ({ sig: "A".repeat(43) })],
  ])("is dropped and reported when its %s was changed on the way", async (_, change) => {
    await bobTrusts({ trust: trustAlice() });
    deliver(change);
    await expectDropped("forged_delivery");
  });

  test("signed with a secret is checked too", async () => {
    const { agent, trusted } = stage.agent("alice.two-hmac");
    const two = await stage.online("alice.two-hmac", stage.url);
    await bobTrusts({ trust: { [agent]: [trusted] } });
    await two.send("agent://bob", {});
    expect((await next(bob)).verified).toBe("agent");
    deliver(() => ({ payload: { forged: true } }));
    await two.send("agent://bob", {});
    await until("it is dropped", () => heard.errors.length > 0);
  });

  test("has no member that was not signed", async () => {
    await bobTrusts({ trust: trustAlice() });
    deliver(() => ({ admin: true }));
    await alice.send("agent://bob", {});
    const { envelope, verified } = await next(bob);
    expect(verified).toBe("agent");
    expect(envelope).not.toHaveProperty("admin");
  });

  test("counts for that agent only", async () => {
    const trusted = stage.agent("alice").trusted;
    await bobTrusts({ trust: { "agent://mallory": [trusted] } });
    await alice.send("agent://bob", {});
    expect((await next(bob)).verified).toBe("unverified");
  });
});

describe("A delivery under a key that is not known", () => {
  test("is marked", async () => {
    await bobTrusts({ trust: { "agent://alice": [testAgent("alice-older").trusted] } });
    await alice.send("agent://bob", {});
    expect(await next(bob)).toMatchObject({ verified: "unverified", from: "agent://alice" });
  });

  test("is dropped where only verified ones are wanted", async () => {
    await bobTrusts({ requireVerified: true });
    await expectDropped("unverified_delivery");
  });
});

describe("A delivery that a gateway made", () => {
  const http = new HttpClient();
  const send = async () => {
    const body = { from: "agent://alice", to: "agent://bob", message: "hi" };
    const answer = await http.post(`${stage.url}/v1/messages/send`, body, { "x-api-key": stage.agent("alice").apiKey });
    expect(answer).toMatchObject({ status: 202, body: { target_delivery: { can_deliver_realtime: true } } });
  };

  test("is verified by the key in the relay's signing manifest", async () => {
    await bobTrusts({}, stage.url);
    await send();
    expect(await next(bob)).toMatchObject({ verified: "gateway", payload: { message: "hi" }, from: "agent://alice" });
  });

  test("is dropped where only verified ones are wanted, unless its key is named", async () => {
    await bobTrusts({ requireVerified: true }, stage.url);
    await send();
    await until("it is dropped", () => heard.errors.length > 0);
    expect(heard.errors).toMatchObject([{ code: "unverified_delivery" }]);
    await bob.close();
    const { gateway_keys } = (await http.get(`${stage.url}/.well-known/signing-manifest.json`)).body;
    const gateways = gateway_keys.map(({ key_id }: Frame) => key_id);
    await bobTrusts({ requireVerified: true, trust: { gateways } }, stage.url);
    await send();
    expect(await next(bob)).toMatchObject({ verified: "gateway" });
  });

  test("and then changed is dropped", async () => {
    await bobTrusts({}, stage.url);
    await send();
    const { envelope } = await next(bob);
    await bob.close();
    proxy.manifest = () => fetch(`${stage.url}/.well-known/signing-manifest.json`).then((answer) => answer.text());
    await bobTrusts({});
    deliver(() => ({ ...envelope, payload: { message: "changed" } }));
    await alice.send("agent://bob", {});
    await until("it is dropped", () => heard.errors.length > 0);
    expect(heard.errors).toMatchObject([{ code: "forged_delivery" }]);
  });

  test("under a key that no manifest lists is unverified, and asks for the manifest but once in a while", async () => {
    let asked = 0;
    proxy.manifest = async () => {
      asked += 1;
      return "no JSON";
    };
    await bobTrusts({});
    // The start looked up whether the agent is online elsewhere.
    asked = 0;
    deliver(() => ({ key_id: "gateway-unheard-of" }));
    for (let n = 0; n < 3; n += 1) await alice.send("agent://bob", {});
    await until("they are delivered", () => heard.deliveries.length === 3);
    expect(heard.deliveries.map(({ verified }) => verified)).toEqual(Array(3).fill("unverified"));
    expect(asked).toBe(1);
  });
});

describe("A relay that errs", () => {
  test("and delivers another's envelope is not believed", async () => {
    await bobTrusts({});
    deliver(() => ({ to: "agent://carol" }));
    await expectDropped("misdirected_delivery");
  });

  test("and delivers twice is heard once; another id under the same key counts anew", async () => {
    await bobTrusts({ trust: trustAlice() });
    const frames: Frame[] = [];
    proxy.toAgent = (frame) => (frame.frame === "deliver" ? frames[frames.push(frame) && 0] : frame);
    await alice.send("agent://bob", { n: 1 });
    await alice.send("agent://bob", { n: 2 });
    await until("the first went out twice", () => frames.length === 2);
    proxy.toAgent = (frame) => frame;
    await alice.send("agent://bob", { n: 3 });
    await until("the last is delivered", () => heard.deliveries.at(-1)?.payload.n === 3);
    expect(heard.deliveries.map(({ payload }) => payload.n)).toEqual([1, 3]);
  });

  test.each([
    ["an envelope without members", { frame: "deliver", envelope: {} }],
    ["an envelope that is none", { frame: "deliver", envelope: [1] }],
    ["a payload that is no object", { frame: "deliver", envelope: { payload: [] } }],
  ])("and delivers %s is told apart", async (_, frame) => {
    await bobTrusts({});
    proxy.toAgent = (real) => (real.frame === "deliver" ? frame : real);
    await alice.send("agent://bob", {});
    await until("it is reported", () => heard.errors.length > 0);
    expect(heard.errors).toMatchObject([{ code: "malformed_delivery" }]);
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
    proxy.toAgent = (real) => (real.envelope?.payload.n === 1 ? frame : real);
    await alice.send("agent://bob", { n: 1 });
    await alice.send("agent://bob", { n: 2 });
    expect((await next(bob)).payload).toEqual({ n: 2 });
    expect(heard.errors).toEqual([]);
  });
});

describe("A relay that lies", () => {
  const MINUTE_MS = 60_000;
  const YEAR_MS = 365 * 24 * 60 * MINUTE_MS;

  /** Alice signed it so long ago; the relay delivers it in place of what she sends now. */
  function deliverSignedBefore(ms: number): void {
    const { key, keyId, agent } = stage.agent("alice");
    const signer = ed25519Key(keyId, (key as { privateKey: string }).privateKey);
    const fields = {
      type: "message.send",
      from: agent,
      to: "agent://bob",
      payload: { old: true },
      ts: Date.now() - ms,
    };
    const envelope = signed(signer, fields);
    proxy.toAgent = (frame) => (frame.frame === "deliver" ? { ...frame, envelope } : frame);
  }

  /** The relay tells a time of its own with a refusal. */
  async function tellTime(offMs: number): Promise<void> {
    proxy.toAgent = (frame) =>
      frame.frame === "deliver" ? { frame: "error", code: "unavailable", server_time: Date.now() + offMs } : frame;
    await alice.send("agent://bob", {});
    await until("the time was told", () => heard.errors.splice(0).length > 0);
  }

  test.each([
    ["a year", YEAR_MS],
    ["eleven minutes", 11 * MINUTE_MS],
    ["minus eleven minutes", -11 * MINUTE_MS],
  ])("and delivers what was signed %s ago is not believed", async (_, age) => {
    await bobTrusts({ trust: trustAlice() });
    deliverSignedBefore(age);
    await expectDropped("stale_delivery");
    expect([...bob.dropped]).toEqual([["stale_delivery", 1]]);
  });

  test("may deliver what was signed nine minutes ago, or anything where no limit is wanted", async () => {
    await bobTrusts({ trust: trustAlice() });
    deliverSignedBefore(9 * MINUTE_MS);
    await alice.send("agent://bob", {});
    expect(await next(bob)).toMatchObject({ verified: "agent", payload: { old: true } });
    await bob.close();
    await bobTrusts({ trust: trustAlice(), maxDeliveryAgeMs: 0 });
    deliverSignedBefore(YEAR_MS);
    await alice.send("agent://bob", {});
    expect(await next(bob)).toMatchObject({ verified: "agent", payload: { old: true } });
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
    proxy.toAgent = (frame) => {
      if (frame.frame === "deliver") kept = frame;
      return frame;
    };
    await alice.send("agent://bob", { n: 1 });
    expect(await next(bob)).toMatchObject({ verified: "unverified", payload: { n: 1 } });
    await tellTime(0);
    proxy.toAgent = (frame) => frame;
    proxy.tell(kept as Frame);
    await alice.send("agent://bob", { n: 2 });
    expect(await next(bob)).toMatchObject({ verified: "agent", payload: { n: 2 } });
    expect(heard.deliveries.map(({ payload }) => payload.n)).toEqual([1, 2]);
  });

  test("and makes up senders without number makes nothing old that a pinned agent sends", async () => {
    await bobTrusts({ trust: trustAlice(), maxInbox: 2 * MAX_SENDERS });
    for (let n = 0; n <= MAX_SENDERS; n += 1) {
      const made = { id: "1", type: "message.send", from: `agent://stranger-${n}`, to: "agent://bob", payload: {} };
      const envelope = { ...made, ts: Date.now() + 5 * MINUTE_MS, key_id: "none", sig: "none" };
      proxy.tell({ frame: "deliver", envelope });
    }
    await alice.send("agent://bob", { n: 1 });
    await until("alice is heard", () => heard.deliveries.at(-1)?.payload.n === 1);
    expect([heard.deliveries.length, heard.errors]).toEqual([MAX_SENDERS + 2, []]);
  });

  test("and delivers an id of a sender again, under another key, is heard once", async () => {
    await bobTrusts({});
    await alice.send("agent://bob", { n: 1 });
    const { envelope } = await next(bob);
    let passed = 0;
    proxy.toAgent = (frame) => {
      if (frame.frame !== "deliver") return frame;
      passed += 1;
      return { ...frame, envelope: { ...envelope, key_id: "another", payload: { n: 2 } } };
    };
    await alice.send("agent://bob", {});
    await until("it went out again", () => passed === 1);
    proxy.toAgent = (frame) => frame;
    await alice.send("agent://bob", { n: 3 });
    await until("the last is delivered", () => heard.deliveries.at(-1)?.payload.n === 3);
    expect(heard.deliveries.map(({ payload }) => payload.n)).toEqual([1, 3]);
  });
});
