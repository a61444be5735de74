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
let delivered: Tally;

beforeEach(() => {
  harness = new RegistrarHarness();
  listenOver(2);
});

function listenOver(partitions: number): void {
  const { connection, registrar, holders, releaser } = harness;
  epochs = new KnownEpochs(2);
  const channel = {
    partitions,
    listen: (events: PodChannelEvents) => {
      comesIn = events;
    },
  } as PodChannel;
  const connections = {
    find: (id: string) => (id === connection.id ? connection : undefined),
  } as unknown as ConnectionRegistry;
  delivered = new Tally();
  deliverFrom(channel, { connections, registrar, holders, releaser, epochs, delivered });
}

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

describe("a delivery", () => {
  const deliver = (connection: string, epoch: number, n = 1) =>
    comesIn.deliver(connection, epoch, AGENT, null, `{"n":${n}}`);
  const received = () => harness.sent.filter(({ frame }) => frame === "deliver").map(({ envelope }) => envelope.n);
  const own = (epoch: number) => {
    harness.request();
    harness.answer(online(epoch));
  };

  test("reaches a connection that has the agent, or whose register may have been granted, under whatever epoch", () => {
    harness.request();
    deliver("con_1", 7, 1);
    harness.answer(online(7));
    deliver("con_1", 7, 2);
    deliver("con_1", 6, 3);
    harness.request();
    harness.answer({ outcome: "unavailable" });
    deliver("con_1", 8, 4);
    expect([received(), harness.released]).toEqual([[1, 2, 3, 4], []]);
  });

  test.each<[string, () => void]>([
    ["never had the agent", () => {}],
    ["has lost it to another", () => harness.takeOver(9)],
    [
      "may not act for it any more",
      () => {
        harness.isAllowed = false;
        harness.registrar.releaseRevoked(harness.connection);
      },
    ],
  ])(
    "is not written to a connection that %s, though it carries another one, and the route is released",
    (what, loses) => {
      harness.agents.apply("agent://other", { kind: "granted", epoch: 1, key: "k", heardAt: 0 });
      if (!what.startsWith("never")) own(7);
      loses();
      harness.released.length = 0;
      deliver("con_1", 7);
      expect([received(), harness.released]).toEqual([[], [{ agent: AGENT, connection: "con_1", epoch: 7 }]]);
      expect([...delivered]).toEqual([["connection_gone", 1]]);
    },
  );

  test("is not written a second time, over several partitions, whatever Redis forgot; one that was not written is", () => {
    deliver("con_1", 7, 1);
    own(7);
    deliver("con_1", 7, 1);
    deliver("con_1", 7, 2);
    deliver("con_1", 7, 1);
    expect([received(), [...delivered]]).toEqual([
      [1, 2],
      [
        ["connection_gone", 1],
        ["sent", 2],
        ["repeated", 1],
      ],
    ]);
  });

  test("on one Redis is not compared with those before: acceptance has seen to it", () => {
    listenOver(1);
    own(7);
    deliver("con_1", 7, 1);
    deliver("con_1", 7, 1);
    expect(received()).toEqual([1, 1]);
  });

  test("to a connection that is gone reaches, once and in order, the one of the pod that has taken the agent since", () => {
    own(9);
    deliver("con_gone", 7, 1);
    deliver("con_gone", 7, 2);
    deliver("con_1", 9, 3);
    expect([received(), harness.released, [...delivered]]).toEqual([[1, 2, 3], [], [["sent", 3]]]);
  });

  test.each<[string, () => void]>([
    ["that had it before", () => own(6)],
    ["that has only asked for it", () => harness.request()],
    [
      "that has lost it since",
      () => {
        own(9);
        harness.takeOver(10);
      },
    ],
    [
      "that has closed since",
      () => {
        own(9);
        harness.registrar.releaseAll(harness.connection);
      },
    ],
  ])("to a connection that is gone reaches none %s, and the route is released", (_, given) => {
    given();
    harness.released.length = 0;
    deliver("con_gone", 7);
    expect([received(), harness.released]).toEqual([[], [{ agent: AGENT, connection: "con_gone", epoch: 7 }]]);
  });
});
