import { afterAll, afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { PRESENCE_LIMITS } from "protocol/contract/limits.ts";
import { envelopeOf, messageOf, presence, requestOf } from "./envelopes.ts";
import { Bench, type Pod } from "./kit.ts";

const bench = new Bench();
let pod: Pod;

const routeOf = async (agent: string) => (await bench.routes())[agent];

beforeEach(async () => {
  await bench.open();
  pod = await bench.pod({ pod: "pod-a" });
});
afterEach(() => bench.clear());
afterAll(() => bench.redis.stop());

describe("a register", () => {
  test("brings its agent online on its connection, seen by the clock of Redis", async () => {
    const before = Date.now();
    const { outcome, status, lastSeen, epoch, pending } = await pod.register("agent://bob", "c1");
    expect({ outcome, status, pending }).toEqual({ outcome: "accepted", status: "online", pending: [] });
    expect(lastSeen).toBeGreaterThanOrEqual(before);
    expect(lastSeen).toBeLessThanOrEqual(Date.now());
    expect(await routeOf("agent://bob")).toBe(`pod-a c1 ${epoch}`);
    expect(await bench.client.zscore((await bench.keys()).presence, "agent://bob")).toBe(String(lastSeen));
    expect(await bench.client.zscore((await bench.keys()).online, "agent://bob")).toBe(String(lastSeen));
  });

  test("on the connection that has the agent has a newer epoch, goes on with the hold, and tells nobody", async () => {
    const ear = await bench.ear("pod-a");
    const heldSince = async () =>
      (await bench.client.hget((await bench.keys()).route, "agent://bob"))?.split(" ").at(-1);
    const first = await pod.register("agent://bob", "c1");
    const since = await heldSince();
    const again = await pod.register("agent://bob", "c1");
    expect(again).toMatchObject({ outcome: "accepted", status: "online" });
    expect(again.epoch).toBeGreaterThan(first.epoch as number);
    expect(await routeOf("agent://bob")).toBe(`pod-a c1 ${again.epoch}`);
    expect(await heldSince()).toBe(since);
    expect(await ear.lines()).toEqual([]);
  });

  test("on another pod takes the agent over, under a higher epoch that the old pod is told", async () => {
    const ear = await bench.ear("pod-a");
    const other = await bench.pod({ pod: "pod-b" });
    const first = await pod.register("agent://bob", "c1");
    const second = await other.register("agent://bob", "c9");
    expect(second.epoch).toBeGreaterThan(first.epoch as number);
    expect(await routeOf("agent://bob")).toBe(`pod-b c9 ${second.epoch}`);
    expect(await ear.lines()).toEqual([`superseded c1 ${second.epoch} agent://bob`]);
  });

  test("on another connection of the same pod takes the agent over as well", async () => {
    const ear = await bench.ear("pod-a");
    await pod.register("agent://bob", "c1");
    const { epoch } = await pod.register("agent://bob", "c2");
    expect(await ear.lines()).toEqual([`superseded c1 ${epoch} agent://bob`]);
  });

  test("raises the epoch with every takeover, those of one batch and those after a reset of the window included", async () => {
    const connections = ["c1", "c2", "c1", "c2"];
    const taken = await Promise.all(connections.map((connection) => pod.register("agent://bob", connection)));
    await bench.client.flushall();
    const epochs = [...taken, await pod.register("agent://bob", "c3")].map(({ epoch }) => epoch as number);
    expect(epochs).toEqual(epochs.toSorted((a, b) => a - b));
    expect(new Set(epochs).size).toBe(epochs.length);
  });

  test("sent again by another connection is a duplicate that takes nothing over", async () => {
    const other = await bench.pod({ pod: "pod-b" });
    const register = envelopeOf("agent.register", "agent://bob");
    const first = presence(await pod.accept(register, { connection: "c1" }));
    const repeat = presence(await other.accept(register, { connection: "c9" }));
    expect(repeat).toMatchObject({ outcome: "duplicate", status: "online", epoch: null, lastSeen: first.lastSeen });
    expect(await routeOf("agent://bob")).toBe(`pod-a c1 ${first.epoch}`);
  });

  test("sent again by the connection that has the agent is a duplicate that names its epoch", async () => {
    const register = envelopeOf("agent.register", "agent://bob");
    const first = presence(await pod.accept(register));
    expect(presence(await pod.accept(register))).toMatchObject({ outcome: "duplicate", epoch: first.epoch });
  });
});

describe("a heartbeat", () => {
  test("brings an agent online that no connection has", async () => {
    const { outcome, status, epoch } = presence(await pod.heartbeat("agent://bob", "c1"));
    expect({ outcome, status }).toEqual({ outcome: "accepted", status: "online" });
    expect(await routeOf("agent://bob")).toBe(`pod-a c1 ${epoch}`);
  });

  test("of the connection that has the agent refreshes what was stale, under the same epoch", async () => {
    await bench.seed("agent://bob", "pod-a c1 7", Date.now() - PRESENCE_LIMITS.staleAfterMs - 5000);
    const { status, epoch, pending } = presence(await pod.heartbeat("agent://bob", "c1"));
    expect({ status, epoch, pending }).toEqual({ status: "online", epoch: 7, pending: [] });
  });

  test("of another connection is not registered while the owner's pod lives, which is asked about the owner", async () => {
    const ear = await bench.ear("pod-b");
    await bench.seed("agent://bob", "pod-b c9 7", Date.now() - PRESENCE_LIMITS.staleAfterMs - 5000);
    expect(await pod.heartbeat("agent://bob", "c1")).toEqual({ outcome: "not_registered", epoch: 7 });
    expect(await ear.lines()).toEqual(["probe c9 7 agent://bob"]);
    expect(await routeOf("agent://bob")).toBe("pod-b c9 7");
  });

  test("that was refused may be sent again once the owner is gone", async () => {
    const ear = await bench.ear("pod-b");
    await bench.seed("agent://bob", "pod-b c9 7", Date.now());
    const heartbeat = envelopeOf("agent.heartbeat", "agent://bob");
    expect(await pod.accept(heartbeat)).toEqual({ outcome: "not_registered", epoch: 7 });
    await ear.close();
    expect(await pod.accept(heartbeat)).toMatchObject({ outcome: "accepted", status: "online" });
  });

  test("takes an agent over whose pod died, which is told nothing but the question", async () => {
    await bench.seed("agent://bob", "pod-dead c9 7", Date.now());
    await bench.client.config("RESETSTAT");
    const { outcome, epoch } = presence(await pod.heartbeat("agent://bob", "c1"));
    expect((await bench.commandCalls()).spublish).toBe(1);
    expect(outcome).toBe("accepted");
    expect(epoch).toBeGreaterThan(7);
    expect(await routeOf("agent://bob")).toBe(`pod-a c1 ${epoch}`);
  });
});

describe("sessions that wait", () => {
  test("come once with the acceptance that takes the agent, oldest first, and not with a refresh", async () => {
    const first = await pod.request("agent://alice", "agent://bob", 5);
    const second = await pod.request("agent://carol", "agent://bob", 1440);
    const { pending } = await pod.register("agent://bob");
    expect(pending).toEqual([
      {
        sessionId: first.sessionId,
        requester: "agent://alice",
        createdAt: first.acceptedAt,
        expiresAt: first.acceptedAt + 5 * 60_000,
      },
      {
        sessionId: second.sessionId,
        requester: "agent://carol",
        createdAt: second.acceptedAt,
        expiresAt: second.acceptedAt + 1440 * 60_000,
      },
    ]);
    expect((await pod.register("agent://bob")).pending).toEqual([]);
    expect(presence(await pod.heartbeat("agent://bob")).pending).toEqual([]);
  });

  test("come again with the repeat of the envelope that took the agent, to its owner alone", async () => {
    const { sessionId } = await pod.request("agent://alice", "agent://bob");
    const register = envelopeOf("agent.register", "agent://bob");
    await pod.accept(register, { connection: "c1" });
    const repeat = presence(await pod.accept(register, { connection: "c1" }));
    expect(repeat.pending.map((session) => session.sessionId)).toEqual([sessionId]);
    expect(presence(await pod.accept(register, { connection: "c2" })).pending).toEqual([]);
  });

  test("come again to the next connection, those that were delivered included", async () => {
    await bench.ear("pod-a");
    await pod.register("agent://bob", "c1");
    const { sessionId, delivery } = await pod.request("agent://alice", "agent://bob");
    expect(delivery).toBe("online");
    const { pending } = await pod.register("agent://bob", "c2");
    expect(pending.map((session) => session.sessionId)).toEqual([sessionId]);
  });
});

test("what comes after a register in the same batch meets the agent online, what comes before does not", async () => {
  await bench.ear("pod-a");
  const outcomes = await pod.acceptAll(
    messageOf("agent://alice", "agent://bob"),
    envelopeOf("agent.register", "agent://bob"),
    requestOf("agent://alice", "agent://bob"),
  );
  expect(outcomes).toMatchObject([{ delivery: "not_seen" }, { status: "online" }, { delivery: "online" }]);
});
