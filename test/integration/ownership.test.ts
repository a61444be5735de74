import { expect, test } from "@jest/globals";
import type { AgentSocket } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given, useRelay } from "../support/use-relay.ts";

const relay = useRelay("rover-hmac", "left-hmac", "right-hmac", "sender-hmac", "crowd-hmac");
const ROUNDS = 100;
const one = given(() => relay.startWsConnector());
const two = given(() => relay.startWsConnector());
const view = given(() => relay.view());

test("two pods that take an agent from each other again and again end with one owner, who gets the messages", async () => {
  const left = await relay.online(one, "left-hmac");
  const right = await relay.online(two, "right-hmac");
  for (let round = 0; round < ROUNDS; round += 1) {
    left.send(relay.envelope("rover-hmac", "agent.register"));
    right.send(relay.envelope("rover-hmac", "agent.register"));
  }
  await until("every register is answered", () => acks(left) === ROUNDS + 1 && acks(right) === ROUNDS + 1);

  const route = await view.route("rover-hmac");
  const [owner, loser] = route?.connection === left.connectionId ? [left, right] : [right, left];
  expect(route?.connection).toBe(owner.connectionId);
  const highest = (socket: AgentSocket) => Math.max(0, ...socket.notices("superseded").map(({ epoch }) => epoch));
  await until("the last takeover is told", () => highest(loser) > highest(owner));
  expect(highest(loser)).toBeLessThanOrEqual(route?.epoch as number);

  expect(await owner.ask(message("rover-hmac", "sender-hmac"))).toMatchObject({ frame: "ack" });
  expect(await loser.ask(message("rover-hmac", "sender-hmac"))).toMatchObject({ code: "not_registered" });
  const sender = await relay.online(one, "sender-hmac");
  const sent = message("sender-hmac", "rover-hmac");
  expect(await sender.ask(sent)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
  await owner.next("the message", ({ envelope }) => envelope?.id === sent.id);
  expect(loser.deliveries).toEqual([]);
  await Promise.all([left, right, sender].map((socket) => socket.close()));
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

test("the agent that a closed connection lost stays with its new owner", async () => {
  const left = await relay.online(one, "left-hmac");
  await left.ask(relay.envelope("rover-hmac", "agent.register"));
  const right = await relay.online(two, "rover-hmac");
  await left.next("superseded", ({ notice }) => notice === "superseded");
  await left.close();
  await until("what the connection carried is released", async () => !(await view.isConnected("left-hmac")));
  expect((await view.route("rover-hmac"))?.connection).toBe(right.connectionId);
  await right.close();
});

test("a route to a connection that its pod does not know is released by the next delivery, or heartbeat", async () => {
  const sender = await relay.online(one, "sender-hmac");
  await leaveRouteBehind("con_gone");
  await sender.ask(message("sender-hmac", "rover-hmac"));
  await until("the route is gone", async () => !(await view.isConnected("rover-hmac")));
  expect(await sender.ask(message("sender-hmac", "rover-hmac"))).toMatchObject({
    target_delivery: { status: "stale" },
  });

  await leaveRouteBehind("con_gone");
  await expectHeartbeatToBringRoverBack();
  await sender.close();
});

test("a route to a connection that carries another agent only is released by the next heartbeat", async () => {
  const other = await relay.online(two, "right-hmac");
  await leaveRouteBehind(other.connectionId);
  await expectHeartbeatToBringRoverBack();
  expect((await view.route("right-hmac"))?.connection).toBe(other.connectionId);
  await other.close();
});

test("a route to a connection that carries another agent only brings it no message of the first, and is released", async () => {
  const sender = await relay.online(one, "sender-hmac");
  const other = await relay.online(two, "right-hmac");
  await leaveRouteBehind(other.connectionId);
  await sender.ask(message("sender-hmac", "rover-hmac"));
  await until("the route is gone", async () => !(await view.isConnected("rover-hmac")));
  const own = message("sender-hmac", "right-hmac");
  await sender.ask(own);
  await other.delivered(own.id);
  expect(other.deliveries).toHaveLength(1);
  await Promise.all([sender, other].map((socket) => socket.close()));
});

test("what goes to a connection whose agent another one of its pod has taken since reaches that one, once and in order", async () => {
  const sender = await relay.online(one, "sender-hmac");
  const rover = await relay.online(two, "rover-hmac");
  const { epoch } = (await view.route("rover-hmac")) as { epoch: number };
  await leadTo("con_gone", epoch - 1);
  const sent = Array.from({ length: 20 }, () => message("sender-hmac", "rover-hmac"));
  const acks = await Promise.all(sent.map((envelope) => sender.ask(envelope)));
  expect(acks).toMatchObject(acks.map(() => ({ target_delivery: { can_deliver_realtime: true } })));
  await rover.delivered(sent.at(-1)?.id);
  expect(rover.deliveries.map(({ envelope }) => envelope.id)).toEqual(sent.map(({ id }) => id));

  await leadTo("con_gone", epoch + 1);
  await sender.ask(message("sender-hmac", "rover-hmac"));
  await until("the route is gone", async () => !(await view.isConnected("rover-hmac")));
  expect(rover.deliveries).toHaveLength(sent.length);
  await Promise.all([sender, rover].map((socket) => socket.close()));
});

/** A first heartbeat is refused, for the route says that another connection has rover; it makes the pod look. */
async function expectHeartbeatToBringRoverBack(): Promise<void> {
  const rover = await relay.connect(one);
  const heartbeat = relay.envelope("rover-hmac", "agent.heartbeat");
  expect(await rover.ask(heartbeat)).toMatchObject({ code: "not_registered" });
  await until("the route is gone", async () => !(await view.isConnected("rover-hmac")));
  expect(await rover.ask(heartbeat)).toMatchObject({ frame: "ack", presence: { status: "online" } });
  await rover.close();
}

/** Makes rover's route lead to a connection that does not have it, as a fault might have left it. */
async function leaveRouteBehind(connection: string): Promise<void> {
  const rover = await relay.online(two, "rover-hmac");
  await leadTo(connection, ((await view.route("rover-hmac")) as { epoch: number }).epoch);
  await rover.close();
}

/** Makes rover's route lead to that connection of its pod, under that epoch. */
async function leadTo(connection: string, epoch: number): Promise<void> {
  const key = (await view.keysOf("rover-hmac")).route;
  const [pod, , , ...times] = ((await view.client.hget(key, "agent://rover-hmac")) as string).split(" ");
  await view.client.hset(key, "agent://rover-hmac", [pod, connection, epoch, ...times].join(" "));
}

function message(from: string, to: string) {
  return relay.envelope(from, "message.send", { to: `agent://${to}`, payload: { message: "hi" } });
}

function acks(socket: AgentSocket): number {
  return socket.frames.filter(({ frame }) => frame === "ack").length;
}
