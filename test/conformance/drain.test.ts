import { beforeEach, describe, expect, test } from "@jest/globals";
import type { Frame } from "../support/agent.ts";
import type { Pod } from "../support/relay.ts";
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

  test("closes within the time it is given", async () => {
    const pod = await relay.startWsConnector({ RELAY_DRAIN_MS: "3000" });
    const sockets = await Promise.all(Array.from({ length: 400 }, () => relay.connect(pod)));
    const stopped = pod.stop();
    await until("all are closed", () => sockets.every(({ closed }) => closed !== undefined), 6000);
    await stopped;
  });
});
