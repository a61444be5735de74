import { beforeEach, expect, test } from "@jest/globals";
import { HttpClient } from "../../test/support/http.ts";
import { fillTo, unlimited } from "../../test/support/test-redis.ts";
import { until } from "../../test/support/until.ts";
import { shared } from "./fixture.ts";
import { PodStage, record } from "./kit.ts";
import type { WireProxy } from "./wire-proxy.ts";

const stage = shared(new PodStage("alice", "bob-hmac", "carol"));
let proxy: WireProxy;

beforeEach(async () => {
  proxy = await stage.proxy(stage.url);
});

test("what is sent while Redis is dead settles once it is back, as it was signed, without a reconnect", async () => {
  const bob = await stage.online("bob-hmac", proxy.url);
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
  await until("the last one is delivered", () => deliveries.at(-1)?.payload.n === undefined && deliveries.length > 0);
  expect(new Set(deliveries.map(({ envelope }) => envelope.id)).size).toBe(deliveries.length);
  expect(states).toEqual([]);
});

test("while Redis hangs sends wait; what may have been accepted is a duplicate at most", async () => {
  const bob = await stage.online("bob-hmac", proxy.url);
  const { deliveries } = record(bob);
  const alice = await stage.online("alice", proxy.url);
  await stage.relay.redis.pause();
  const answer = alice.send(bob.agent, { n: 1 });
  const before = proxy.sent.length;
  await until("it went out again", () => proxy.sent.slice(before).some(({ type }) => type === "message.send"));
  await stage.relay.redis.resume();
  await answer;
  expect(deliveries.filter(({ payload }) => payload.n === 1).length).toBeLessThanOrEqual(1);
});

test("a connector that starts while Redis is dead is registered once it is back, on the same connection", async () => {
  await stage.relay.redis.kill();
  const before = proxy.connections;
  const alice = stage.connector("alice", proxy.url);
  const started = alice.start();
  const registers = () => proxy.sent.filter(({ type, from }) => type === "agent.register" && from === alice.agent);
  const asked = registers().length;
  await until("it asked twice", () => registers().length > asked + 1);
  await stage.relay.redis.start();
  await started;
  expect(proxy.connections).toBe(before + 1);
});

test("a connector that starts while the relay takes no new agents is registered once it does, on the same connection", async () => {
  const { client } = stage.relay.view();
  await fillTo(client, 0.8);
  const isDegraded = async () => (await new HttpClient().get(`${stage.url}/ready`)).body.degraded !== undefined;
  await until("it is short of memory", isDegraded);
  let refusals = 0;
  proxy.toAgent = (frame) => {
    if (frame.code !== "over_capacity") return frame;
    refusals += 1;
    return { ...frame, retry_after_ms: 50 };
  };
  const started = stage.connector("carol", proxy.url).start();
  await until("it asked twice", () => refusals > 1);
  await unlimited(client);
  await started;
  expect(proxy.connections).toBe(1);
});
