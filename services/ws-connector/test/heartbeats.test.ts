import { beforeEach, describe, expect, test } from "@jest/globals";
import { createLogger } from "runtime/logging.ts";
import { UNDONE } from "window/acceptance/acceptance.ts";
import type { Touch, TouchAnswer, Touches } from "window/acceptance/touches.ts";
import type { PodChannel } from "window/pod-channel.ts";
import { REDIS_LIMITS } from "window/redis/limits.ts";
import type { Connection } from "../src/connection.ts";
import { type GatheredHeartbeat, Heartbeats } from "../src/heartbeats.ts";
import { Ownership } from "../src/ownership.ts";
import { online } from "./registrar-harness.ts";

const EPOCH = 7;
/** The calls so far: partition, and agents in order. */
let calls: [number, string[]][];
/** What the calls have waited for since it was set. */
let written: PromiseWithResolvers<void>;
let answers: (TouchAnswer | "threw")[];
let isHeard: boolean;
let heartbeats: Heartbeats;

/** An agent that is called after its partition. */
const partitionOf = (agent: string) => Number(/(\d)-/.exec(agent)?.[1]);
const touches = {
  partitions: 2,
  partitionOf,
  write: async (partition: number, batch: readonly Touch[]) => {
    calls.push([partition, batch.map(({ item }) => item.envelope.from)]);
    await written.promise;
    return batch.map(() => online(EPOCH));
  },
} as unknown as Touches;

beforeEach(() => {
  [calls, answers, isHeard] = [[], [], true];
  written = Promise.withResolvers();
  const channel = { isReadyFor: () => isHeard } as unknown as PodChannel;
  heartbeats = new Heartbeats({ touches, channel, logger: createLogger({ service: "test", level: "silent" }) });
});

function connectionWith(...agents: readonly string[]): Connection {
  const ownership = new Ownership("con_1");
  for (const agent of agents) ownership.apply(agent, { kind: "granted", epoch: EPOCH, key: "k", heardAt: 0 });
  return { agents: ownership } as unknown as Connection;
}

function gather(connection: Connection, agent: string, changes: Partial<GatheredHeartbeat> = {}): void {
  const item = { envelope: { from: agent } } as Touch["item"];
  const answered = (answer: TouchAnswer) => void answers.push(answer);
  heartbeats.gather({ item, connection, epoch: EPOCH, heardAt: 0, answered, ...changes });
}

async function settle(connection: Connection): Promise<void> {
  written.resolve();
  await heartbeats.settled(connection);
}

describe("heartbeats that are gathered", () => {
  test("are written together, one call a partition, and each gets its answer", async () => {
    const one = connectionWith("0-a", "1-a");
    const two = connectionWith("0-b");
    gather(one, "0-a");
    gather(one, "1-a");
    gather(two, "0-b");
    expect(calls).toEqual([]);
    heartbeats.flush();
    heartbeats.flush();
    expect(calls).toEqual([
      [0, ["0-a", "0-b"]],
      [1, ["1-a"]],
    ]);
    await settle(one);
    expect(answers).toEqual(Array(3).fill(online(EPOCH)));
  });

  test("are written at once when they are as many as one call takes", () => {
    const connection = connectionWith("0-a");
    for (let n = 0; n <= REDIS_LIMITS.routesBatch; n += 1) gather(connection, "0-a");
    expect(calls.map(([, agents]) => agents.length)).toEqual([REDIS_LIMITS.routesBatch]);
  });

  test("are written before what their connection sends next about the agent, and for no other's sake", () => {
    const one = connectionWith("0-a", "1-a");
    gather(one, "0-a");
    gather(one, "1-a");
    heartbeats.flushOf(connectionWith("0-a"));
    heartbeats.flushOf(one, "0-b");
    expect(calls).toEqual([]);
    heartbeats.flushOf(one, "0-a");
    expect(calls).toEqual([[0, ["0-a"]]]);
    heartbeats.flushOf(one);
    expect(calls).toEqual([
      [0, ["0-a"]],
      [1, ["1-a"]],
    ]);
  });

  test("are settled when those under way are answered, too", async () => {
    const connection = connectionWith("0-a");
    gather(connection, "0-a");
    heartbeats.flush();
    let isSettled = false;
    const settled = heartbeats.settled(connection).then(() => {
      isSettled = true;
    });
    await new Promise(setImmediate);
    expect(isSettled).toBe(false);
    written.resolve();
    await settled;
    expect(answers).toHaveLength(1);
  });

  test("are settled though another connection's have no answer", async () => {
    gather(connectionWith("0-b"), "0-b");
    heartbeats.flush();
    await heartbeats.settled(connectionWith("0-a"));
    expect([calls, answers]).toEqual([[[0, ["0-b"]]], []]);
  });

  test("of an agent that its connection has lost, or has anew, are not written: acceptance decides", async () => {
    const connection = connectionWith("0-a", "0-b");
    gather(connection, "0-a");
    gather(connection, "0-b", { epoch: EPOCH - 1 });
    connection.agents.apply("0-a", { kind: "superseded", epoch: EPOCH + 1 });
    await settle(connection);
    expect([calls, answers]).toEqual([[], [null, null]]);
  });

  test("of agents that no delivery reaches are not written: nobody is called online by them", async () => {
    const connection = connectionWith("0-a");
    gather(connection, "0-a");
    isHeard = false;
    await settle(connection);
    expect([calls, answers]).toEqual([[], [UNDONE]]);
  });

  test("are each answered, whatever comes of the answer of another", async () => {
    const connection = connectionWith("0-a", "0-b");
    const answered = () => {
      throw new Error("thrown by the test");
    };
    gather(connection, "0-a", { answered });
    gather(connection, "0-b");
    await settle(connection);
    expect(answers).toEqual([online(EPOCH)]);
  });
});
