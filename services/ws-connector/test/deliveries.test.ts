import { beforeEach, describe, expect, test } from "@jest/globals";
import { Tally } from "relay-runtime/metrics/service-metrics.ts";
import type { SpanOptions } from "relay-runtime/tracing/span.ts";
import type { Tracing } from "relay-runtime/tracing/tracing.ts";
import type { PodChannel, PodChannelEvents } from "relay-window/channel/pod-channel.ts";
import { KnownEpochs } from "relay-window/presence/held-routes.ts";
import { partitionOf } from "relay-window/redis/partitions.ts";
import type { ConnectionRegistry } from "../src/connection/registry.ts";
import { deliverFrom, RecentDeliveries } from "../src/delivery/deliveries.ts";
import { AGENT, NO_TRACING, online, RegistrarHarness } from "./registrar-harness.ts";

let harness: RegistrarHarness;
let comesIn: PodChannelEvents;
let epochs: KnownEpochs;
let delivered: Tally;
let disconnected: string[];

beforeEach(() => {
  harness = new RegistrarHarness();
  listenOver(2);
});

function listenOver(partitions: number, tracing = NO_TRACING): void {
  const { connection, registrar, agentConnections, releaser } = harness;
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
  disconnected = [];
  const disconnect = ({ id }: { id: string }) => void disconnected.push(id);
  const agents = { registrar, agentConnections };
  deliverFrom({ channel, releaser, epochs }, { connections, agents, delivered, tracing, disconnect });
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

describe("a connection that the operator has closed for an agent", () => {
  test("is closed while it has the agent, under whatever epoch, or waits for the answer to its register", () => {
    harness.request();
    comesIn.disconnect("con_1", 7, AGENT);
    harness.answer(online(7));
    comesIn.disconnect("con_1", 6, AGENT);
    expect([disconnected, harness.released]).toEqual([["con_1", "con_1"], []]);
  });

  test("stays when it has lost the agent meanwhile, though it carries another one", () => {
    harness.agents.apply("agent://other", { kind: "granted", epoch: 1, key: "k", heardAt: 0 });
    comesIn.disconnect("con_1", 7, AGENT);
    const route = { agent: AGENT, connection: "con_1", epoch: 7 };
    expect([disconnected, harness.released]).toEqual([[], [route]]);
  });

  test("stays when it is another one that the agent has left, and takes the agent's new connection nowhere", () => {
    harness.request();
    harness.answer(online(8));
    comesIn.disconnect("con_gone", 7, AGENT);
    expect([disconnected, harness.released]).toEqual([[], [{ agent: AGENT, connection: "con_gone", epoch: 7 }]]);
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

  test("is told of in the trace whose line stands right behind it, with what became of it", () => {
    const told: object[] = [];
    const begin = (name: string, { traceparent }: SpanOptions) => ({
      end: (attributes: object) => told.push({ name, traceparent, ...attributes }),
    });
    listenOver(2, { isOn: true, begin } as unknown as Tracing);
    own(7);
    deliver("con_1", 7, 1);
    comesIn.traced("first");
    deliver("con_1", 7, 2);
    deliver("con_1", 7, 2);
    comesIn.traced("again");
    harness.takeOver(9);
    deliver("con_1", 7, 3);
    comesIn.traced("gone");
    expect(told).toEqual([
      { name: "deliver", traceparent: "first", "agent_relay.outcome": "sent" },
      { name: "deliver", traceparent: "again", "agent_relay.outcome": "repeated" },
      { name: "deliver", traceparent: "gone", "agent_relay.outcome": "connection_gone" },
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

describe("Recent deliveries:", () => {
  let recent: RecentDeliveries;

  beforeEach(() => {
    recent = new RecentDeliveries();
  });

  const textOf = (n: number) => `{"payload":{},"sig":"${String(n).padStart(43, "A")}"}`;

  test("what was not delivered is not known", () => {
    recent.add(textOf(1), 0);
    expect(recent.has(textOf(2), 0)).toBe(false);
  });

  test("what was delivered is known for a minute at least, and for two at most, whether anything else comes or not", () => {
    recent.add(textOf(1), 0);
    recent.add(textOf(2), 59_999);
    expect([recent.has(textOf(1), 60_000), recent.has(textOf(2), 119_999)]).toEqual([true, true]);
    expect(recent.has(textOf(2), 120_000)).toBe(false);
    recent.add(textOf(3), 200_000);
    expect([recent.has(textOf(3), 299_999), recent.has(textOf(3), 300_000)]).toEqual([true, false]);
  });

  test("what was delivered first is known for no less time while other deliveries come", () => {
    for (let second = 0; second <= 60; second += 1) recent.add(textOf(second), second * 1000);
    expect(recent.has(textOf(1), 61_000)).toBe(true);
    expect(recent.has(textOf(0), 120_000)).toBe(false);
  });

  test("of very many the last 200,000 are known, and at most twice as many", () => {
    const most = 200_000;
    for (let n = 0; n <= 2 * most; n += 1) recent.add(textOf(n), 0);
    expect([recent.has(textOf(2 * most), 0), recent.has(textOf(most), 0)]).toEqual([true, true]);
    expect(recent.has(textOf(most - 1), 0)).toBe(false);
  });
});
