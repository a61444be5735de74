import { afterEach, expect, jest, test } from "@jest/globals";
import { until } from "../../test/support/until.ts";
import type { Connector, Delivery } from "../src/index.ts";
import { shared } from "./fixture.ts";
import { PodStage, record, untilState } from "./kit.ts";
import { holdIntervals, leapingTime } from "./times.ts";

const BACK_WITHIN_MS = 10_000;
afterEach(() => {
  jest.useRealTimers();
  jest.restoreAllMocks();
});
const stage = shared(new PodStage("alice", "bob-hmac"));
let bob: Connector;
let delivered: Delivery[];

async function bobListens(url = stage.url): Promise<void> {
  bob = await stage.online("bob-hmac", url);
  delivered = record(bob).deliveries;
}

function numbers(): unknown[] {
  return delivered.map(({ payload }) => payload.n);
}

test("when a pod is killed in full flow, every send settles, each envelope is delivered once, in order", async () => {
  await bobListens();
  const victim = await stage.relay.startWsConnectorProcess();
  const proxy = await stage.proxy(victim.url);
  const alice = await stage.online("alice", proxy.url);
  const { states } = record(alice);
  const answers: Promise<{ duplicate: boolean }>[] = [];
  const send = () => answers.push(alice.send(bob.agent, { n: answers.length }));
  for (let n = 0; n < 400; n += 1) send();
  await until("it flows", () => delivered.length > 50);
  const killed = victim.end("SIGKILL");
  proxy.lead(stage.url);
  await killed;
  for (let n = 0; n < 50; n += 1) send();
  await Promise.all(answers);
  await until("all are delivered", () => delivered.length >= answers.length);
  expect(numbers()).toEqual(answers.map((_, n) => n));
  expect(states).toEqual(["reconnecting", "online"]);
});

test("an answer lost on the way makes a duplicate, not a second delivery", async () => {
  await bobListens();
  const proxy = await stage.proxy(stage.url);
  const alice = await stage.online("alice", proxy.url);
  proxy.cutAtAck();
  expect(await alice.send(bob.agent, { n: 0 })).toMatchObject({ duplicate: true, delivery: { status: "online" } });
  const copies = proxy.sent.filter(({ type }) => type === "message.send");
  expect(copies).toHaveLength(2);
  expect(copies[0]).toEqual(copies[1]);
  expect(numbers()).toEqual([0]);
});

test("every agent of a killed pod is back within ten seconds", async () => {
  const victim = await stage.relay.startWsConnectorProcess();
  const proxy = await stage.proxy(victim.url);
  const both = [await stage.online("alice", proxy.url), await stage.online("bob-hmac", proxy.url)];
  await victim.end("SIGKILL");
  for (const connector of both) await untilState(connector, "reconnecting");
  proxy.lead(stage.url);
  for (const connector of both) await untilState(connector, "online", BACK_WITHIN_MS);
  expect(await (both[0] as Connector).send("agent://bob-hmac", {})).toMatchObject({ delivery: { status: "online" } });
});

test("while no relay answers it keeps trying, and says so", async () => {
  const gone = await stage.proxy(stage.url);
  gone.refusesWith = 503;
  const alice = stage.connector("alice", gone.url);
  const heard: unknown[] = [];
  alice.on("state", (state) => heard.push(state));
  const started = alice.start();
  await until("it tried three times", () => heard.length > 3);
  const again = { status: "reconnecting", reason: "unreachable", closeCode: 1006, retryInMs: expect.any(Number) };
  expect(heard.slice(0, 4)).toEqual([{ status: "connecting" }, again, again, again]);
  await alice.close();
  await expect(started).rejects.toMatchObject({ code: "closed" });
});

test("a start that is aborted ends the connector, and says why", async () => {
  const proxy = await stage.proxy(stage.url);
  proxy.isSilent = true;
  const alice = stage.connector("alice", proxy.url);
  await expect(alice.start({ signal: AbortSignal.timeout(50) })).rejects.toMatchObject({
    code: "aborted",
    cause: { name: "TimeoutError" },
  });
  expect(alice.state.status).toBe("closed");
});

test("a pod that drains is left for another before it closes: nothing sent meanwhile is missed", async () => {
  const leaving = await stage.relay.startWsConnectorProcess();
  const proxy = await stage.proxy(leaving.url);
  await bobListens(proxy.url);
  const { notices, states } = record(bob);
  const alice = await stage.online("alice", stage.url);
  proxy.lead(stage.url);
  // The relay's own drain of two connections leaves no time between notice and close; a busy one's does.
  proxy.tell({ frame: "notice", notice: "draining", reconnect_after_ms: 20 });
  await until("bob is told to leave", () => notices.length > 0);
  const answers = [];
  for (let n = 0; proxy.connections < 2 || n < 100; n += 1) answers.push(await alice.send(bob.agent, { n }));
  const promised = answers.filter(({ delivery }) => delivery.canDeliverRealtime);
  await until("all that was promised is delivered", () => delivered.length >= promised.length);
  expect(promised).toHaveLength(answers.length);
  expect(new Set(numbers()).size).toBe(answers.length);
  expect(states).toEqual([]);
  expect(bob.state.status).toBe("online");
});

test("a pod that ends at once after its notice is followed by another one", async () => {
  const leaving = await stage.relay.startWsConnectorProcess({ RELAY_DRAIN_MS: "0" });
  const proxy = await stage.proxy(leaving.url);
  await bobListens(proxy.url);
  const alice = await stage.online("alice", stage.url);
  const ends: unknown[] = [];
  bob.on("state", (state) => state.status === "reconnecting" && ends.push(state));
  const ended = leaving.end("SIGTERM");
  proxy.lead(stage.url);
  expect(await ended).toBe(0);
  await until("bob is back", async () => (await alice.send(bob.agent, {})).delivery.canDeliverRealtime);
  // A busy machine may close the connection only when bob has left it.
  expect(ends).toEqual(ends.map(() => expect.objectContaining({ reason: "lost", closeCode: 1001 })));
});

test("a network that goes silent is noticed by the missing answer, and left", async () => {
  await bobListens();
  const proxy = await stage.proxy(stage.url, 500);
  const alice = await stage.online("alice", proxy.url);
  proxy.isSilent = true;
  const sent = alice.send(bob.agent, { n: 0 });
  await untilState(alice, "reconnecting");
  expect(alice.state).toMatchObject({ reason: "lost", closeCode: 1006 });
  // The next connection is not lost, however long its answers take on a busy machine.
  proxy.heartbeatIntervalMs = 15_000;
  proxy.isSilent = false;
  proxy.cut();
  expect(await sent).toMatchObject({ duplicate: false });
  await until("it is delivered", () => delivered.length > 0);
  expect(proxy.sent.filter(({ type }) => type === "message.send")).toHaveLength(2);
});

test("a connection that brings frames in, and carries nothing out, is given up", async () => {
  const proxy = await stage.proxy(stage.url, 400);
  const alice = await stage.online("alice", proxy.url);
  const { states } = record(alice);
  proxy.toRelay = () => undefined;
  await until("it is given up", () => {
    proxy.tell({ frame: "notice", notice: "slow_down", envelopes_per_second: 0, bytes_per_second: 0 });
    return states.includes("reconnecting");
  });
});

test("a connection whose envelopes are answered stays, however long the answer to its heartbeat takes", async () => {
  holdIntervals();
  const leap = leapingTime();
  const proxy = await stage.proxy(stage.url);
  const alice = await stage.online("alice", proxy.url);
  const { states } = record(alice);
  proxy.toRelay = (envelope) => (envelope.type === "agent.heartbeat" ? undefined : envelope);
  const seconds = (count: number) => jest.advanceTimersByTime(count * 1000);
  leap(15_000);
  seconds(1);
  await until("a heartbeat is out", () => proxy.sent.some(({ type }) => type === "agent.heartbeat"));
  for (let n = 0; n < 6; n += 1) {
    seconds(8);
    await alice.send("agent://nobody", {});
  }
  expect(states).toEqual([]);
});
