import { beforeEach, describe, expect, test } from "@jest/globals";
import { ServiceMetrics } from "runtime/metrics/service-metrics.ts";
import type { CongestionNotices } from "../src/congestion.ts";
import type { Connection } from "../src/connection.ts";
import { ConnectionQuota } from "../src/connection-quota.ts";
import { ConnectionRegistry } from "../src/connection-registry.ts";
import { createPodCounters, type PodCounters } from "../src/metrics.ts";
import { Outboxes, type OutboxLimit } from "../src/outboxes.ts";
import type { Registrar } from "../src/registrar.ts";
import { fakeSocket } from "./fake-socket.ts";

let counters: PodCounters;
let connection: Connection;

beforeEach(() => {
  counters = createPodCounters(new ServiceMetrics("ws-connector"));
  const registry = new ConnectionRegistry({
    settings: { envelopesPerSecond: 200, bytesPerSecond: 0 },
    quota: new ConnectionQuota({ maxConnections: 2, connectionsPerAddress: 0, unregisteredConnections: 0 }, () => {}),
    outboxes: new Outboxes({ outboxBytes: 65_536, outboxTotal: 0 }),
    congestion: { changed: () => {} } as unknown as CongestionNotices,
    registrar: { releaseAll: () => {} } as unknown as Registrar,
    counters,
    connectorVersion: undefined,
    receive: () => {},
  });
  const { socket, stream } = fakeSocket();
  registry.add(socket, stream, "203.0.113.7");
  [connection] = [...registry] as [Connection];
});

describe("a limit that a registered connection reached", () => {
  test("is counted for the key whose limit it is, also where that is not the first on the connection", () => {
    connection.noteValid("key:alice-1", "agent://alice");
    connection.limitReached("key_envelopes", "key:bob-1");
    expect([...counters.keyRefusals]).toEqual([["key bob-1", 1]]);
  });

  test("is counted for the key of its first valid envelope where it is the connection's, whatever keys follow", () => {
    connection.noteValid("key:alice-1", "agent://alice");
    connection.noteValid("key:bob-1", "agent://bob");
    connection.closeFor("pings");
    expect([...counters.keyRefusals]).toEqual([["key alice-1", 1]]);
  });

  test("is told apart by kind: an issuer may have the name of a key", () => {
    connection.noteValid("issuer:alice-1", "agent://alice");
    connection.closeFor("pings");
    expect([...counters.keyRefusals]).toEqual([["issuer alice-1", 1]]);
  });

  test.each<OutboxLimit>(["outbox", "outbox_total", "outbox_stalled"])(
    "is not held against the key of a recipient, to whom others sent too much: %s",
    (limit) => {
      connection.noteValid("key:alice-1", "agent://alice");
      connection.readsTooSlowly(limit);
      expect(connection.isClosing).toBe(true);
      expect([...counters.keyRefusals]).toEqual([]);
    },
  );
});

test("A limit that an unregistered connection reached is nobody's", () => {
  connection.closeFor("unregistered_intake");
  expect([...counters.keyRefusals]).toEqual([]);
});
