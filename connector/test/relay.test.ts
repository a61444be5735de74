import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import { Redis } from "ioredis";
import { Secrets } from "../../test/support/admin.ts";
import type { Pod } from "../../test/support/relay.ts";
import { RedisMonitor } from "../../test/support/test-redis.ts";
import { until } from "../../test/support/until.ts";
import { ACME, GLOBEX, IssuerStage, type Party, party } from "./credentials/parties.ts";
import { shared } from "./fixture.ts";
import { next, PodStage, record } from "./kit.ts";
import { waitForLookUps } from "./times.ts";

/** What only a relay can show, and no scenario of `test/connectors` has. */

describe("Two connectors", () => {
  const stage = shared(new PodStage("alice", "bob", "carol-hmac"));

  test("exchange a message, which has just the members that it was given, and those that say whose it is", async () => {
    const { agent, trusted } = stage.agent("carol-hmac");
    const sender = await stage.online("carol-hmac", stage.url);
    const receiver = await stage.online("bob", stage.url, { trust: { [agent]: [trusted] } });
    const payload = { text: "Grüße 😂", n: [1e21, { b: null, a: true }] };
    const answer = await sender.send(receiver.agent, payload, { type: "message.offer", taskId: "t-1" });
    const delivery = { status: "online", canDeliverRealtime: true };
    expect(answer).toEqual({ envelopeId: expect.any(String), delivery, duplicate: false });
    const common = { from: agent, type: "message.offer", payload };
    const signed = { ts: expect.any(Number), key_id: trusted.keyId, sig: expect.any(String) };
    expect(await next(receiver)).toEqual({
      envelope: { ...common, id: answer.envelopeId, to: receiver.agent, task_id: "t-1", ...signed },
      ...{ ...common, taskId: "t-1", sealed: false, verified: "agent", receivedAt: expect.any(Number) },
    });
  });

  test("exchange what is as large as the relay takes", async () => {
    const alice = await stage.online("alice", stage.url);
    expect(await alice.send("agent://bob", { text: "x".repeat(32_350) })).toMatchObject({ duplicate: false });
  });

  test("slow down over the relay's rate, and all that they send is accepted once", async () => {
    const slow = await stage.relay.startWsConnector({ RELAY_ENVELOPES_PER_SECOND: "20" });
    const alice = await stage.online("alice", slow.url);
    const answers = await Promise.all(Array.from({ length: 130 }, (_, n) => alice.send("agent://bob", { n })));
    expect(answers.every(({ duplicate }) => !duplicate)).toBe(true);
  });

  test("settle what was sent while Redis was dead once it is back, as it was signed, without a reconnect", async () => {
    const proxy = await stage.proxy(stage.url);
    const bob = await stage.online("bob", proxy.url);
    const { deliveries } = record(bob);
    const alice = await stage.online("alice", proxy.url);
    const { states } = record(alice);
    await stage.relay.redis.kill();
    const answers = Array.from({ length: 5 }, (_, n) => alice.send(bob.agent, { n }));
    const sent = () => proxy.sent.filter(({ type }) => type === "message.send");
    await until("they went out a second time", () => sent().length > 5);
    await stage.relay.redis.start();
    await Promise.all(answers);
    const texts = new Map(sent().map((envelope) => [envelope.id, JSON.stringify(envelope)]));
    expect(sent().every((envelope) => texts.get(envelope.id) === JSON.stringify(envelope))).toBe(true);

    await until("bob is present again", async () => (await alice.send(bob.agent, {})).delivery.canDeliverRealtime);
    await until("the last one is delivered", () => deliveries.length > 0 && deliveries.at(-1)?.payload.n === undefined);
    expect(new Set(deliveries.map(({ envelope }) => envelope.id)).size).toBe(deliveries.length);
    expect(states).toEqual([]);
  });
});

describe("An agent whose key stands in no file", () => {
  const PINNED = { trust: { issuers: [ACME, GLOBEX] } };
  const stage = shared(new IssuerStage(3));
  let [ann, bob, cleo]: Party[] = [];

  beforeEach(async () => {
    waitForLookUps();
    [ann, bob, cleo] = await Promise.all(
      ["acme.ann", "globex.bob", "globex.cleo"].map((name) => party(`agent://${name}`)),
    );
  });
  afterEach(() => {
    jest.restoreAllMocks();
  });

  test("registers at three pods in turn, and is who it says to whoever pinned its issuer", async () => {
    const pinning = await stage.join(bob as Party, stage.url, { trust: { issuers: [ACME] } });
    const believing = await stage.join(cleo as Party, (stage.pods[1] as Pod).url);
    expect(stage.pods).toHaveLength(3);
    for (const { url } of stage.pods) {
      const sender = await stage.join(ann as Party, url);
      for (const to of [pinning.agent, believing.agent])
        expect(await sender.send(to, { at: url })).toMatchObject({ delivery: { status: "online" } });
      const delivery = { from: sender.agent, payload: { at: url }, issuer: "acme" };
      expect(await next(pinning)).toMatchObject({ ...delivery, verified: "agent" });
      expect(await next(believing)).toMatchObject({ ...delivery, verified: "relay_issuer" });
      await pinning.send(sender.agent, {});
      const { verified, issuer, envelope } = await next(sender);
      expect([verified, issuer]).toEqual(["relay_issuer", "globex"]);
      expect(envelope.key_id).toMatch(/^jkt-[\w-]{43}$/);
      await sender.close();
    }
  });

  test("is who it says to a newcomer, too, when Redis came back empty, before it registers again", async () => {
    const sender = await stage.join(ann as Party, stage.url);
    await stage.relay.view().client.flushall();
    const newcomer = await stage.join(bob as Party, (stage.pods[1] as Pod).url);
    await sender.send(newcomer.agent, {});
    const verdict = { verified: "relay_issuer", issuer: "acme" };
    expect(await next(newcomer)).toMatchObject({ from: sender.agent, ...verdict });
  });

  test("seals what its recipient alone can read: Redis, the log and the frames have a ciphertext", async () => {
    const secret = "the plan of the day";
    const { host } = new URL(stage.front.url);
    stage.front.lead((await stage.relay.startWsConnector({ RELAY_PUBLIC_HOSTS: host })).url);
    const seen: string[] = [];
    const client = new Redis(stage.relay.redis.adminAddress, { lazyConnect: true });
    const monitor = await RedisMonitor.open(client, ({ args }) => seen.push(args.join(" ")));
    stage.front.toAgent = (frame) => frame[seen.push(JSON.stringify(frame)) && "frame"] && frame;
    const sender = await stage.join(ann as Party, stage.front.url, { ...PINNED, seal: "required" });
    const receiver = await stage.join(bob as Party, stage.front.url, PINNED);
    const payload = { message: secret };
    const sent = sender.send(receiver.agent, payload, { taskId: "t-1" });
    payload.message = "of later";
    await sent;
    const delivery = await next(receiver);
    expect(delivery).toMatchObject({ payload: { message: secret }, sealed: true, verified: "agent", issuer: "acme" });
    const { ct } = (delivery.envelope.payload as { sealed: { ct: string } }).sealed;
    await until("the ciphertext went through Redis", () => seen.some((text) => text.includes(ct)));
    monitor.close();
    client.disconnect();
    expect(stage.relay.log.length).toBeGreaterThan(0);
    expect(new Secrets({ SECRET: secret }).in([...seen, ...stage.relay.log].join("\n"))).toEqual([]);
    // What a session is about stays readable.
    await sender.requestSession(receiver.agent, { purpose: "talk" });
    expect(await next(receiver)).toMatchObject({ type: "session.request", payload: { purpose: "talk" } });
  });
});
