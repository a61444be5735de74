import { beforeEach, describe, expect, test } from "@jest/globals";
import type { Frame } from "../support/agent.ts";
import type { Pod } from "../support/relay.ts";
import { tryUpgrade } from "../support/try-upgrade.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay("alice", "bob-hmac");
let leaving: Pod;
const staying = given(() => relay.startWsConnector());
const alice = given(() => relay.online(staying, "alice"));

beforeEach(async () => {
  leaving = await relay.startWsConnector({ RELAY_DRAIN_MS: "2000" });
});

async function statusOfBob(): Promise<string> {
  const ack = await alice.ask(relay.envelope("alice", "message.send", { to: "agent://bob-hmac" }));
  return ack.target_delivery.status;
}

describe("a pod that stops", () => {
  test("gives every client the notice `draining` and closes with 1001", async () => {
    const sockets = await Promise.all(Array.from({ length: 20 }, () => relay.connect(leaving)));
    await leaving.stop();
    for (const socket of sockets) {
      expect(await socket.untilClosed()).toBe(1001);
      expect(socket.frames.at(-1)).toEqual({
        frame: "notice",
        notice: "draining",
        reconnect_after_ms: expect.any(Number),
      });
    }
    const delays = sockets.map(({ frames }) => frames.at(-1).reconnect_after_ms);
    expect(Math.min(...delays)).toBeGreaterThan(0);
    expect(Math.max(...delays)).toBeLessThanOrEqual(1000);
    expect(new Set(delays).size).toBeGreaterThan(10);
  });

  test("leaves no agent online, and none is kept from coming back elsewhere", async () => {
    await relay.online(leaving, "bob-hmac");
    expect(await statusOfBob()).toBe("online");
    await leaving.stop();
    const { online_agents } = (await (await fetch(`${staying.url}/ready`)).json()) as Frame;
    expect(online_agents).toBe(1);
    expect(await statusOfBob()).toBe("stale");
    const back = await relay.online(staying, "bob-hmac");
    expect(await statusOfBob()).toBe("online");
    await back.close();
  });

  test("closes within the time it is given, and takes no connection meanwhile", async () => {
    const pod = await relay.startWsConnector({ RELAY_DRAIN_MS: "3000" });
    const sockets = await Promise.all(Array.from({ length: 400 }, () => relay.connect(pod)));
    const startedAt = performance.now();
    const stopped = pod.stop();
    await sockets[0]?.next("the notice", ({ notice }) => notice === "draining");
    const [ready, health] = await Promise.all([fetch(`${pod.url}/ready`), fetch(`${pod.url}/health`)]);
    expect([ready.status, health.status]).toEqual([503, 200]);
    const { status, headers } = await tryUpgrade(pod, "/ws");
    expect([status, headers["retry-after"]]).toEqual([503, "5"]);
    expect(sockets.some(({ closed }) => closed === undefined)).toBe(true);
    await Promise.all(sockets.map((socket) => socket.untilClosed()));
    expect(performance.now() - startedAt).toBeLessThan(6000);
    await stopped;
  });

  test("delivers to a connection until it closes that one", async () => {
    const others = await Promise.all(Array.from({ length: 60 }, () => relay.connect(leaving)));
    const bob = await relay.online(leaving, "bob-hmac");
    const stopped = leaving.stop();
    await bob.next("the notice", ({ notice }) => notice === "draining");
    const envelope = relay.envelope("alice", "message.send", { to: "agent://bob-hmac" });
    expect((await alice.ask(envelope)).target_delivery.status).toBe("online");
    await bob.delivered(envelope.id);
    await stopped;
    await until("all are closed", () => others.every(({ closed }) => closed !== undefined));
  });
});
