import { describe, expect, test } from "@jest/globals";
import type { AgentSocket, Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const CROWD = Array.from({ length: 101 }, (_, n) => `crowd${n}`);
const relay = conformingRelay("alice", "bob-hmac", "carol", "dave", "erin", ...CROWD);
const one = given(() => relay.startWsConnector());
const two = given(() => relay.startWsConnector());
const alice = given(() => relay.online(one, "alice"));

const register = (name: string) => relay.envelope(name, "agent.register");
const heartbeat = (name: string) => relay.envelope(name, "agent.heartbeat");
const message = (to: string): Frame => relay.envelope("alice", "message.send", { to: `agent://${to}` });
const onlineCount = async () => ((await (await fetch(`${one.url}/ready`)).json()) as Frame).online_agents;
const statusOf = async (name: string) => (await alice.ask(message(name))).target_delivery.status;

async function supersededNotice(socket: AgentSocket, name: string): Promise<Frame> {
  const isIt = (frame: Frame) => frame.notice === "superseded" && frame.agent_id === `agent://${name}`;
  return await socket.next(`${name} is superseded`, isIt);
}

describe("a register on another connection", () => {
  test.each([
    ["of another pod", () => two],
    ["of the same pod", () => one],
  ])("%s takes the agent over: the older owner gets the notice and 4409", async (_which, pod) => {
    const older = await relay.online(one, "bob-hmac");
    const newer = await relay.online(pod(), "bob-hmac");
    expect(await supersededNotice(older, "bob-hmac")).toEqual({
      frame: "notice",
      notice: "superseded",
      agent_id: "agent://bob-hmac",
      epoch: expect.any(Number),
    });
    expect(await older.untilClosed()).toBe(4409);
    const envelope = message("bob-hmac");
    expect((await alice.ask(envelope)).target_delivery.status).toBe("online");
    await newer.delivered(envelope.id);
    await newer.close();
  });

  test("raises the agent's epoch each time", async () => {
    const epochs: number[] = [];
    let older = await relay.online(one, "carol");
    for (const pod of [two, one, two]) {
      const newer = await relay.online(pod, "carol");
      epochs.push((await supersededNotice(older, "carol")).epoch);
      older = newer;
    }
    expect(epochs).toEqual([...new Set(epochs)].sort((a, b) => a - b));
    await older.close();
  });

  test("leaves a connection open that carries another agent, which goes on", async () => {
    const both = await relay.online(one, "bob-hmac");
    await both.ask(register("carol"));
    const newer = await relay.online(two, "bob-hmac");
    await supersededNotice(both, "bob-hmac");

    expect(await both.ask(relay.envelope("carol", "message.send", { to: "agent://alice" }))).toMatchObject({
      accepted: true,
    });
    const lost = relay.envelope("bob-hmac", "message.send", { to: "agent://alice" });
    expect(await both.ask(lost)).toMatchObject({ code: "not_registered" });
    expect(await both.ask(heartbeat("bob-hmac"))).toMatchObject({ code: "not_registered" });
    expect(await both.ask(register("bob-hmac"))).toMatchObject({ accepted: true });
    expect(await newer.untilClosed()).toBe(4409);
    await both.close();
  });

  test("is told to an owner whose heartbeat crosses it, too", async () => {
    for (let round = 0; round < 20; round += 1) {
      const older = await relay.online(one, "bob-hmac");
      const newer = await relay.connect(round % 2 === 0 ? one : two);
      newer.send(register("bob-hmac"));
      for (let n = 0; n < 10; n += 1) older.send(heartbeat("bob-hmac"));
      expect(await older.untilClosed()).toBe(4409);
      await supersededNotice(older, "bob-hmac");
      await newer.close();
    }
  });

  test("again on the same connection takes nothing over", async () => {
    const socket = await relay.online(one, "bob-hmac");
    await socket.ask(register("bob-hmac"));
    await socket.ask(heartbeat("bob-hmac"));
    expect(socket.notices("superseded")).toEqual([]);
    await socket.close();
  });
});

describe("a heartbeat", () => {
  test("alone brings an agent online that no connection has", async () => {
    const socket = await relay.connect(one);
    expect(await socket.ask(heartbeat("dave"))).toMatchObject({ presence: { status: "online" } });
    const envelope = message("dave");
    alice.send(envelope);
    await socket.delivered(envelope.id);
  });

  test("takes nothing from a live connection; when that is gone, the same connection may have the agent", async () => {
    const owner = await relay.online(one, "erin");
    const other = await relay.connect(two);
    expect(await other.ask(heartbeat("erin"))).toMatchObject({ code: "not_registered" });
    expect(await statusOf("erin")).toBe("online");
    await owner.close();
    await until("erin is on the other connection", async () => (await other.ask(heartbeat("erin"))).accepted === true);
    expect(owner.notices("superseded")).toEqual([]);
  });
});

describe("the end of a connection", () => {
  test.each([
    ["closes", (socket: AgentSocket) => socket.close()],
    ["is cut off", (socket: AgentSocket) => socket.socket.terminate()],
  ])("that %s makes all its agents stale at once", async (_how, end) => {
    const socket = await relay.online(two, "bob-hmac");
    await socket.ask(register("carol"));
    const before = await onlineCount();
    await end(socket);
    await until("two agents less are online", async () => (await onlineCount()) === before - 2);
    expect([await statusOf("bob-hmac"), await statusOf("carol")]).toEqual(["stale", "stale"]);
  });

  test("does not remove a newer owner's route", async () => {
    for (let round = 0; round < 10; round += 1) {
      const older = await relay.online(one, "bob-hmac");
      const newer = await relay.connect(two);
      older.socket.close();
      await newer.ask(register("bob-hmac"));
      await older.untilClosed();
      const envelope = message("bob-hmac");
      expect((await alice.ask(envelope)).target_delivery.status).toBe("online");
      await newer.delivered(envelope.id);
      await newer.close();
    }
  });
});

test("A connection carries 100 agents; the 101st is refused until one of them is elsewhere", async () => {
  const socket = await relay.connect(one);
  for (const name of CROWD) socket.send(register(name));
  const last = await socket.ask(heartbeat("crowd99"));
  expect(last).toMatchObject({ accepted: true });
  const errors = socket.frames.filter(({ frame }) => frame === "error");
  expect(errors).toMatchObject([{ code: "invalid_envelope" }]);
  expect(errors[0].message).toContain("100");

  await relay.online(two, "crowd0");
  await supersededNotice(socket, "crowd0");
  expect(await socket.ask(register("crowd100"))).toMatchObject({ accepted: true });
  const envelope = message("crowd100");
  alice.send(envelope);
  await socket.delivered(envelope.id);
});
