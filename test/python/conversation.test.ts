import { describe, expect, test } from "@jest/globals";
import type { Connector } from "../../connector/src/index.ts";
import { MAX_SENDERS } from "../../connector/src/limits.ts";
import { PodStage, record } from "../../connector/test/kit.ts";
import type { WireProxy } from "../../connector/test/wire-proxy.ts";
import type { Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { type PythonConnectors, withPython } from "./python-connector.ts";

const { stage, python } = withPython(new PodStage("alice", "bob", "carol-hmac"));

/** A Python connector, registered. */
async function inPython(name: string, url = stage.url, options: object = {}): Promise<PythonConnectors> {
  await python.online(name, pythonOptions(name, url, options));
  return python;
}

function pythonOptions(name: string, url: string, options: object = {}): object {
  const { agent, key } = stage.agent(name);
  const { keyId, alg, ...rest } = key as { keyId: string; alg: string; privateKey?: string; secret?: string };
  const secret = rest.secret === undefined ? { private_key: rest.privateKey } : { secret: rest.secret };
  // The pod tells nobody over HTTP who is online.
  return { url, agent, key: { key_id: keyId, alg, ...secret }, take_over: true, ...options };
}

/** Replies to each question with its own payload, in TypeScript. */
async function replies(connector: Connector): Promise<void> {
  for await (const delivery of connector) await delivery.reply(delivery.payload);
}

const texts = (proxy: WireProxy, type: string) => proxy.sent.filter((one) => one.type === type);

describe("A Python agent", () => {
  test("is asked by one in TypeScript, and its reply is for the question alone", async () => {
    const agents = await inPython("bob");
    agents.echo("bob");
    const alice = await stage.online("alice", stage.url, { trust: { "agent://bob": [stage.agent("bob").trusted] } });
    const { deliveries } = record(alice);
    const payloads = Array.from({ length: 20 }, (_, n) => ({ n }));
    const answers = await Promise.all(payloads.map((payload) => alice.ask("agent://bob", payload)));
    expect(answers.map(({ payload }) => payload)).toEqual(payloads);
    expect(answers[0]).toMatchObject({ from: "agent://bob", type: "message.reply", verified: "agent" });
    expect(deliveries).toEqual([]);
  });

  test("takes no reply that is not verified for that of an agent whose key it pinned", async () => {
    const { publicKey: public_key } = stage.agent("bob").trusted as { publicKey: string };
    const trust = { keys: { "agent://alice": [{ key_id: "another", alg: "ed25519", public_key }] } };
    const agents = await inPython("bob", stage.url, { trust });
    void replies(await stage.online("alice", stage.url));
    const asked = expect(agents.call("bob", "ask", ["agent://alice", {}])).rejects.toMatchObject({
      details: { code: "closed", outcome: "unknown" },
    });
    const { delivery } = await agents.tells("the reply", (told) => told.delivery !== undefined);
    expect(delivery).toMatchObject({ type: "message.reply", verified: "unverified" });
    await agents.call("bob", "close");
    await asked;
  });

  test("knows who signed: a pinned key, or nobody but the relay; and drops what only claims to be", async () => {
    const { publicKey: public_key } = stage.agent("alice").trusted as { publicKey: string };
    const key = { key_id: stage.agent("alice").keyId, alg: "ed25519", public_key };
    const proxy = await stage.proxy(stage.url);
    const trust = { keys: { "agent://alice": [key] } };
    const agents = await inPython("bob", proxy.url, { trust });
    const [alice, carol] = [await stage.online("alice", stage.url), await stage.online("carol-hmac", stage.url)];
    await alice.send("agent://bob", { n: 1 });
    await carol.send("agent://bob", { n: 2 });
    const isFrom = (name: string) => (told: Frame) => told.delivery?.sender === `agent://${name}`;
    expect((await agents.tells("alice's", isFrom("alice"))).delivery.verified).toBe("agent");
    expect((await agents.tells("carol's", isFrom("carol-hmac"))).delivery.verified).toBe("unverified");
    proxy.toAgent = (frame) =>
      frame.frame === "deliver" ? { ...frame, envelope: { ...frame.envelope, payload: { n: 9 } } } : frame;
    await alice.send("agent://bob", { n: 3 });
    await agents.tells("the forged one", ({ problem }) => problem?.code === "forged_delivery");
    expect(await agents.call("bob", "dropped")).toEqual({ forged_delivery: 1 });
  });

  test("hears an agent whose key it pinned, however many senders a relay makes up", async () => {
    const { publicKey: public_key } = stage.agent("alice").trusted as { publicKey: string };
    const key = { key_id: stage.agent("alice").keyId, alg: "ed25519", public_key };
    const proxy = await stage.proxy(stage.url);
    const options = { trust: { keys: { "agent://alice": [key] } }, max_inbox: 2 * MAX_SENDERS };
    const agents = await inPython("bob", proxy.url, options);
    for (let n = 0; n <= MAX_SENDERS; n += 1) {
      const made = { id: "1", type: "message.send", from: `agent://stranger-${n}`, to: "agent://bob", payload: {} };
      proxy.tell({ frame: "deliver", envelope: { ...made, ts: Date.now() + 300_000, key_id: "none", sig: "none" } });
    }
    const alice = await stage.online("alice", stage.url);
    await alice.send("agent://bob", { n: 1 });
    await agents.tells("alice's", ({ delivery }) => delivery?.verified === "agent");
    expect(await agents.call("bob", "dropped")).toEqual({});
  });
});

describe("A Python agent keeps to what hello says:", () => {
  test("it is present by heartbeats", async () => {
    const proxy = await stage.proxy(stage.url, 400);
    await inPython("bob", proxy.url);
    await until("three heartbeats came in", () => texts(proxy, "agent.heartbeat").length >= 3);
  });

  test("it has no more envelopes without an answer than there may be", async () => {
    const proxy = await stage.proxy(stage.url);
    let [unanswered, most] = [0, 0];
    proxy.toRelay = (envelope) => {
      if (envelope.type === "message.send") unanswered += 1;
      most = Math.max(most, unanswered);
      return envelope;
    };
    proxy.toAgent = (frame) => {
      if (frame.frame === "hello") frame.limits.max_unacknowledged = 4;
      if (frame.type === "message.send") unanswered -= 1;
      return frame;
    };
    const agents = await inPython("bob", proxy.url);
    const sends = Array.from({ length: 100 }, (_, n) => agents.call("bob", "send", ["agent://alice", { n }]));
    await Promise.all(sends);
    expect([most, unanswered]).toEqual([4, 0]);
  });

  test("a rate that it is over slows it down, and costs it nothing else", async () => {
    const slow = await stage.relay.startWsConnector({ RELAY_ENVELOPES_PER_SECOND: "20" });
    const proxy = await stage.proxy(slow.url);
    const agents = await inPython("bob", proxy.url);
    const sends = Array.from({ length: 130 }, (_, n) => agents.call("bob", "send", ["agent://alice", { n }]));
    expect((await Promise.all(sends)).every(({ duplicate }) => !duplicate)).toBe(true);
    expect([proxy.connections, texts(proxy, "message.send").length]).toEqual([1, sends.length]);
  });

  test("a register that the relay cannot take for the moment is repeated on the same connection", async () => {
    const proxy = await stage.proxy(stage.url);
    let refusals = 2;
    proxy.toAgent = (frame) => {
      if (frame.type !== "agent.register" || refusals === 0) return frame;
      refusals -= 1;
      return { frame: "error", code: "unavailable", envelope_id: frame.envelope_id, retry_after_ms: 20 };
    };
    const agents = await inPython("bob", proxy.url);
    expect([proxy.connections, texts(proxy, "agent.register").length]).toEqual([1, 3]);
    expect(agents.told.map(({ state }) => state).filter(Boolean)).toEqual(["connecting", "online"]);
  });
});

describe("A Python agent whose connection fails", () => {
  test("ends for good when another connection takes the agent, and when its key is refused", async () => {
    const agents = await inPython("bob");
    await stage.online("bob", stage.url);
    await agents.tells("the end", ({ state }) => state === "closed");
    await expect(agents.call("bob", "send", ["agent://alice", {}])).rejects.toMatchObject({
      details: { code: "superseded", outcome: "refused" },
    });
    const stranger = {
      ...pythonOptions("bob", stage.url),
      key: { ...keyOf("bob"), key_id: stage.agent("alice").keyId },
    };
    agents.make("stranger", stranger);
    await expect(agents.call("stranger", "start")).rejects.toMatchObject({
      details: { code: "bad_signature", retry: "fix" },
    });
  });

  test.each([1003, 1007, 1008, 1009, 4403])("does not come back after %i", async (code) => {
    const proxy = await stage.proxy(stage.url);
    const agents = await inPython("bob", proxy.url);
    proxy.closeAgents(code);
    await agents.tells("the end", ({ state }) => state === "closed");
    expect(proxy.connections).toBe(1);
  });

  test("notices a network that is dead, and one that loses its close", async () => {
    const proxy = await stage.proxy(stage.url, 400);
    const agents = await inPython("bob", proxy.url);
    proxy.isSilent = true;
    await agents.tells("the loss", ({ state }) => state === "reconnecting");
    proxy.isSilent = false;
    await until("it is back", () => agents.told.filter(({ state }) => state === "online").length >= 2);
  });

  test("goes by the relay's clock, and believes no signature when the two are far apart", async () => {
    const proxy = await stage.proxy(stage.url);
    proxy.toAgent = (frame) =>
      frame.frame === "hello" ? { ...frame, server_time: frame.server_time - 240_000 } : frame;
    const agents = await inPython("bob", proxy.url);
    const [register] = texts(proxy, "agent.register") as [Frame];
    expect(Math.abs(register.ts - (Date.now() - 240_000))).toBeLessThan(30_000);
    const old = stage.agent("alice");
    const alice = await stage.online(old.agent.slice("agent://".length), stage.url);
    proxy.toAgent = (frame) =>
      frame.frame === "deliver" ? { ...frame, envelope: { ...frame.envelope, ts: Date.now() - 1_000_000 } } : frame;
    await alice.send("agent://bob", {});
    await agents.tells("what is old", ({ problem }) => problem?.code === "stale_delivery");
  });
});

function keyOf(name: string): object {
  return (pythonOptions(name, stage.url) as { key: object }).key;
}
