import { beforeEach, describe, expect, test } from "@jest/globals";
import { Tally } from "runtime/metrics/service-metrics.ts";
import { KnownEpochs } from "window/known-epochs.ts";
import type { PodChannel, PodChannelEvents } from "window/pod-channel.ts";
import { partitionOf } from "window/redis/partitions.ts";
import type { ConnectionRegistry } from "../src/connection-registry.ts";
import { deliverFrom } from "../src/deliveries.ts";
import { AGENT, online, RegistrarHarness } from "./registrar-harness.ts";

let harness: RegistrarHarness;
let comesIn: PodChannelEvents;
let epochs: KnownEpochs;

beforeEach(() => {
  harness = new RegistrarHarness();
  const { connection, registrar, releaser } = harness;
  epochs = new KnownEpochs(2);
  const channel = {
    listen: (events: PodChannelEvents) => {
      comesIn = events;
    },
  } as PodChannel;
  const connections = {
    find: (id: string) => (id === connection.id ? connection : undefined),
  } as unknown as ConnectionRegistry;
  deliverFrom(channel, { connections, registrar, releaser, epochs, delivered: new Tally() });
});

test("the epoch of a takeover is known to the pod, also of a connection that is gone", () => {
  comesIn.superseded("con_gone", 9, AGENT);
  expect(epochs.highestIn(partitionOf(AGENT, 2))).toBe(9);
  expect(epochs.highestIn(1 - partitionOf(AGENT, 2))).toBe(0);
});

describe("a connection that is asked whether it still has an agent", () => {
  const route = { agent: AGENT, connection: "con_1", epoch: 7 };

  test("keeps the route while it has the agent", () => {
    harness.request();
    harness.answer(online(7));
    comesIn.probe("con_1", 7, AGENT);
    expect(harness.released).toEqual([]);
  });

  test("keeps the route while a register of the agent is under way, or had no answer", () => {
    harness.request();
    comesIn.probe("con_1", 7, AGENT);
    harness.answer({ outcome: "unavailable" });
    comesIn.probe("con_1", 7, AGENT);
    expect(harness.released).toEqual([]);
  });

  test("gives the route up when it has lost the agent, though it carries another one", () => {
    harness.agents.apply("agent://other", { kind: "granted", epoch: 1, key: "k", heardAt: 0 });
    comesIn.probe("con_1", 7, AGENT);
    expect(harness.released).toEqual([route]);
  });

  test("gives the route up when it is gone itself", () => {
    comesIn.probe("con_gone", 7, AGENT);
    expect(harness.released).toEqual([{ ...route, connection: "con_gone" }]);
  });
});
