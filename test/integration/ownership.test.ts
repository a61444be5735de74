import { expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

/** Agents that move between pods, that pods lose, and that pods find again. */

const KILLED = ["sent-to-hmac", "registers-hmac", "beats-hmac", "succeeds-hmac"] as const;
const ROVERS = ["rover-hmac", "rover"] as const;
const relay = useRelay("left-hmac", "right-hmac", "sender-hmac", "crowd-hmac", ...ROVERS, ...KILLED);
const ROUNDS = 100;
const one = given(() => relay.startWsConnector());
const two = given(() => relay.startWsConnector());
const doomed = given(() => relay.startWsConnectorProcess());
const view = given(() => relay.view());
const sender = given(() => relay.online(one, "sender-hmac"));

const message = (from: string, to: string) =>
  relay.envelope(from, "message.send", { to: `agent://${to}`, payload: { message: "hi" } });
const untilGone = (name: string) => until("the route is gone", async () => !(await view.isConnected(name)));

async function expectOnline(target: AgentSocket, name: string): Promise<void> {
  const sent = message("sender-hmac", name);
  expect(await sender.ask(sent)).toMatchObject({ target_delivery: { status: "online", can_deliver_realtime: true } });
  await target.delivered(sent.id);
}

test("two pods that take an agent from each other again and again end with one owner, who gets the messages", async () => {
  const left = await relay.online(one, "left-hmac");
  const right = await relay.online(two, "right-hmac");
  for (let round = 0; round < ROUNDS; round += 1) {
    left.send(relay.envelope("rover-hmac", "agent.register"));
    right.send(relay.envelope("rover-hmac", "agent.register"));
  }
  const acks = (socket: AgentSocket) => socket.frames.filter(({ frame }) => frame === "ack").length;
  await until("every register is answered", () => acks(left) === ROUNDS + 1 && acks(right) === ROUNDS + 1);

  const route = await view.route("rover-hmac");
  const [owner, loser] = route?.connection === left.connectionId ? [left, right] : [right, left];
  expect(route?.connection).toBe(owner.connectionId);
  const highest = (socket: AgentSocket) => Math.max(0, ...socket.notices("superseded").map(({ epoch }) => epoch));
  await until("the last takeover is told", () => highest(loser) > highest(owner));
  expect(highest(loser)).toBeLessThanOrEqual(route?.epoch as number);

  expect(await owner.ask(message("rover-hmac", "sender-hmac"))).toMatchObject({ frame: "ack" });
  expect(await loser.ask(message("rover-hmac", "sender-hmac"))).toMatchObject({ code: "not_registered" });
  await expectOnline(owner, "rover-hmac");
  expect(loser.deliveries).toEqual([]);
  await Promise.all([left, right].map((socket) => socket.close()));
});

test("of many connections that register one agent at once, one stays; every other is told and closed with 4409", async () => {
  const sockets = await Promise.all(Array.from({ length: 20 }, (_, n) => relay.connect(n % 2 === 0 ? one : two)));
  for (const socket of sockets) socket.send(relay.envelope("crowd-hmac", "agent.register"));
  await until("one is left", () => sockets.filter(({ closed }) => closed === undefined).length === 1);

  const route = await view.route("crowd-hmac");
  const [owner] = sockets.filter(({ closed }) => closed === undefined) as [AgentSocket];
  const others = sockets.filter((socket) => socket !== owner);
  expect(route?.connection).toBe(owner.connectionId);
  expect(others.map(({ closed }) => closed?.code)).toEqual(others.map(() => 4409));
  expect(others.map((socket) => socket.notices("superseded").length)).toEqual(others.map(() => 1));
  await owner.close();
});

test("a route to a connection that does not have the agent brings it nothing, and is released by the next delivery, or heartbeat", async () => {
  const other = await relay.online(two, "right-hmac");
  await leaveRouteBehind(other.connectionId);
  await sender.ask(message("sender-hmac", "rover-hmac"));
  await untilGone("rover-hmac");
  await expectOnline(other, "right-hmac");
  expect(other.deliveries).toHaveLength(1);

  await leaveRouteBehind(other.connectionId);
  const rover = await relay.connect(one);
  const heartbeat = relay.envelope("rover-hmac", "agent.heartbeat");
  // The route says that another connection has the agent. The pod of that one is asked.
  expect(await rover.ask(heartbeat)).toMatchObject({ code: "not_registered" });
  await untilGone("rover-hmac");
  expect(await rover.ask(heartbeat)).toMatchObject({ frame: "ack", presence: { status: "online" } });
  await Promise.all([rover, other].map((socket) => socket.close()));
});

// Signatures of one rover are checked at once, those of the other on another thread.
test.each(ROVERS)(
  "heartbeats of %s that are gathered around its register are acked, and the register alone has another epoch",
  async (name) => {
    const rover = await relay.online(one, "left-hmac");
    await rover.ask(relay.envelope(name, "agent.register"));
    const before = await view.route(name);
    const envelopes = ["heartbeat", "register", "heartbeat"].map((type) => relay.envelope(name, `agent.${type}`));
    for (const envelope of envelopes) rover.send(envelope);
    for (const { id } of envelopes) {
      expect(await rover.next("its answer", ({ envelope_id }) => envelope_id === id)).toMatchObject({ accepted: true });
    }
    const after = await view.route(name);
    expect(after?.connection).toBe(before?.connection);
    expect(after?.epoch).toBeGreaterThan(before?.epoch as number);
    expect(await rover.ask(relay.envelope(name, "agent.heartbeat"))).toMatchObject({ accepted: true });
    expect(await view.route(name)).toEqual(after);
    await rover.close();
  },
);

test.each(ROVERS)(
  "a heartbeat of %s that is gathered while its pod stops is answered, and leaves the agent offline",
  async (name) => {
    const pod = await relay.startWsConnector();
    const rover = await relay.online(pod, name);
    const heartbeat = relay.envelope(name, "agent.heartbeat");
    rover.send(heartbeat);
    // A message behind it is answered at once: the heartbeat was taken in.
    await rover.ask(message(name, "sender-hmac"));
    await pod.stop();
    expect(rover.frames.find(({ envelope_id }) => envelope_id === heartbeat.id)).toMatchObject({ accepted: true });
    expect(await view.isConnected(name)).toBe(false);
  },
);

test.each(ROVERS)(
  "a heartbeat of %s that is gathered while its connection closes says when the agent was last heard, and leaves it offline",
  async (name) => {
    const rover = await relay.online(one, name);
    const seenIn = ({ presence }: Frame) => Date.parse(presence.last_seen_iso);
    const beat = () => relay.envelope(name, "agent.heartbeat");
    // Redis timed the register, and the pod knows that clock to within a round trip.
    const registered = (await view.lastSeen(name)) as number;
    await until("a heartbeat is later", async () => seenIn(await rover.ask(beat())) > registered);
    const before = (await view.lastSeen(name)) as number;
    await until("the next millisecond", () => Date.now() > before + 1);
    rover.send(beat());
    await rover.ask(message(name, "sender-hmac"));
    await rover.close();
    await untilGone(name);
    expect(await view.lastSeen(name)).toBeGreaterThan(before);
    // Its pod has written all that it gathered so far: this heartbeat is gathered behind it.
    await sender.ask(relay.envelope("sender-hmac", "agent.heartbeat"));
    expect(await view.isConnected(name)).toBe(false);
  },
);

test("a pod that was killed is discovered at the next delivery, and its agents come back on others with a register or a heartbeat alone", async () => {
  for (const name of KILLED) await expectOnline(await relay.online(doomed, name), name);
  await view.kill(doomed);
  expect(await view.isConnected("sent-to-hmac")).toBe(true);
  expect(await sender.ask(message("sender-hmac", "sent-to-hmac"))).toMatchObject({
    accepted: true,
    target_delivery: { status: "stale", can_deliver_realtime: false },
  });
  expect(await view.isConnected("sent-to-hmac")).toBe(false);

  await expectOnline(await relay.online(one, "registers-hmac"), "registers-hmac");
  await expectOnline(await relay.online(await relay.startWsConnector(), "succeeds-hmac"), "succeeds-hmac");
  const target = await relay.connect(one);
  const heartbeat = () => target.ask(relay.envelope("beats-hmac", "agent.heartbeat"));
  let answer = await heartbeat();
  // Over several partitions a pod is gone once its lease is over.
  await until("the pod is gone", async () => {
    if (relay.partitions === 1 || answer.code !== "unavailable") return true;
    answer = await heartbeat();
    return false;
  });
  expect(answer).toMatchObject({ accepted: true, presence: { status: "online" } });
  await expectOnline(target, "beats-hmac");
});

/** Makes rover's route lead to a connection of its pod that does not have it, as a fault might have left it. */
async function leaveRouteBehind(connection: string): Promise<void> {
  const rover = await relay.online(two, "rover-hmac");
  const { epoch } = (await view.route("rover-hmac")) as { epoch: number };
  const key = (await view.keysOf("rover-hmac")).route;
  const [pod, , , ...times] = ((await view.client.hget(key, "agent://rover-hmac")) as string).split(" ");
  await view.client.hset(key, "agent://rover-hmac", [pod, connection, epoch, ...times].join(" "));
  await rover.close();
}
