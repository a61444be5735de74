import { beforeEach, describe, expect, jest, test } from "@jest/globals";
import { ServiceMetrics } from "relay-runtime/metrics/service-metrics.ts";
import type { CongestionNotices } from "../src/agents/congestion.ts";
import type { Registrar } from "../src/agents/registrar.ts";
import type { Connection } from "../src/connection/connection.ts";
import { OutboxBudget, type OutboxLimit } from "../src/connection/outbox.ts";
import { ConnectionRegistry } from "../src/connection/registry.ts";
import { createPodCounters, type PodCounters } from "../src/metrics.ts";
import { ConnectionQuota, type CountedConnection, type QuotaSettings } from "../src/throttle/connection-quota.ts";
import { fakeSocket } from "./connection-kit.ts";

/** The connections of a pod: how many there may be, and whose their limits are. */

describe("The quota of connections:", () => {
  const NO_LIMITS: QuotaSettings = { maxConnections: 1000, connectionsPerAddress: 0, unregisteredConnections: 0 };
  const MINUTE_MS = 60_000;

  let quota: ConnectionQuota;
  let limitsReached: string[];
  let now: number;

  beforeEach(() => {
    limitsReached = [];
    now = 1_000_000;
  });

  function limit(settings: Partial<QuotaSettings>): void {
    quota = new ConnectionQuota({ ...NO_LIMITS, ...settings }, (name) => limitsReached.push(name));
  }

  /** What another connection of the address would be told. */
  function answerTo(address: string): string {
    const refusal = quota.refusalOf(address, now);
    return refusal === null ? "accepted" : `${refusal.code} ${refusal.retryAfterMs}`;
  }

  interface Opened extends CountedConnection {
    isClosedByQuota: boolean;
  }

  function open(address: string): Opened {
    const connection = {
      addressCounts: quota.countsOf(address),
      isClosedByQuota: false,
      close() {
        connection.isClosedByQuota = true;
        quota.closing(connection);
      },
    };
    quota.opened(connection);
    return connection;
  }

  function openRegistered(address: string): Opened {
    const connection = open(address);
    quota.registered(connection);
    return connection;
  }

  function close(connection: CountedConnection): void {
    quota.closing(connection);
    quota.closed(connection);
  }

  test("A full pod is over capacity for everybody until a connection ends", () => {
    limit({ maxConnections: 2 });
    const first = open("203.0.113.1");
    open("203.0.113.2");
    expect(answerTo("203.0.113.3")).toBe("over_capacity 5000");
    expect(limitsReached).toEqual(["pod_connections"]);
    close(first);
    expect(answerTo("203.0.113.3")).toBe("accepted");
  });

  describe("An address", () => {
    test("has so many connections open at once; other addresses are not affected", () => {
      limit({ connectionsPerAddress: 2 });
      const first = openRegistered("203.0.113.1");
      openRegistered("203.0.113.1");
      expect(answerTo("203.0.113.1")).toBe("rate_limited 5000");
      expect(answerTo("203.0.113.2")).toBe("accepted");
      expect(limitsReached).toEqual(["address_connections"]);
      expect(quota.refusalOf("203.0.113.1", now)?.message).toMatch(/connections_per_address.*: 2\./);
      close(first);
      expect(answerTo("203.0.113.1")).toBe("accepted");
    });

    test("has half of them without a register, rounded up", () => {
      limit({ connectionsPerAddress: 5 });
      const first = open("203.0.113.1");
      open("203.0.113.1");
      expect(answerTo("203.0.113.1")).toBe("accepted");
      open("203.0.113.1");
      expect(answerTo("203.0.113.1")).toBe("rate_limited 5000");
      expect(limitsReached).toEqual(["address_unregistered"]);
      quota.registered(first);
      expect(answerTo("203.0.113.1")).toBe("accepted");
    });

    test("opens twice as many in a minute, and is told when the next one begins", () => {
      limit({ connectionsPerAddress: 2 });
      expect(answerTo("203.0.113.1")).toBe("accepted");
      const staying = openRegistered("203.0.113.1");
      for (let n = 0; n < 3; n += 1) close(open("203.0.113.1"));
      now += 20_000;
      expect(answerTo("203.0.113.1")).toBe("rate_limited 40000");
      expect(limitsReached).toEqual(["address_opens"]);
      now += 40_000;
      expect(answerTo("203.0.113.1")).toBe("accepted");
      expect(staying.addressCounts).toMatchObject({ open: 1, opened: 0 });
    });

    test("is its /64 when it is of IPv6", () => {
      limit({ connectionsPerAddress: 1 });
      open("2001:db8:0:7::1");
      expect(answerTo("2001:db8:0:7:a:b:c:d")).toBe("rate_limited 5000");
      expect(answerTo("2001:db8:0:8::1")).toBe("accepted");
    });

    test("is counted once for a connection that registers, closes and is gone", () => {
      limit({ connectionsPerAddress: 2 });
      const connection = openRegistered("203.0.113.1");
      quota.registered(connection);
      close(connection);
      expect(connection.addressCounts).toMatchObject({ open: 0, unregistered: 0 });
    });

    test("has no limit when that is 0, and is told apart from others all the same, since addresses take turns", () => {
      limit({ connectionsPerAddress: 0 });
      for (let n = 0; n < 500; n += 1) open("203.0.113.1");
      expect(answerTo("203.0.113.1")).toBe("accepted");
      expect(quota.countsOf("203.0.113.1")).toBe(quota.countsOf("203.0.113.1"));
      expect(quota.countsOf("203.0.113.2")).not.toBe(quota.countsOf("203.0.113.1"));
    });
  });

  describe("Connections that have not registered", () => {
    test("are closed, the oldest first, when there are too many; no new connection is refused for them", () => {
      limit({ unregisteredConnections: 2 });
      const connections = ["203.0.113.1", "203.0.113.2", "203.0.113.3", "203.0.113.4"].map(open);
      expect(connections.map(({ isClosedByQuota }) => isClosedByQuota)).toEqual([true, true, false, false]);
      expect(limitsReached).toEqual(["pod_unregistered", "pod_unregistered"]);
      expect(answerTo("203.0.113.5")).toBe("accepted");
    });

    test("are not closed once they have registered, however old they are", () => {
      limit({ unregisteredConnections: 2 });
      const old = openRegistered("203.0.113.1");
      for (let n = 0; n < 10; n += 1) open("203.0.113.2");
      expect(old.isClosedByQuota).toBe(false);
    });
  });

  describe("What is remembered of addresses", () => {
    test("is forgotten within the next minute once their last connection is closed", () => {
      limit({ connectionsPerAddress: 10 });
      quota.forgetClosed(now);
      const staying = open("203.0.113.1");
      const gone = open("203.0.113.2");
      close(gone);
      expect(quota.countsOf("203.0.113.2")).toBe(gone.addressCounts);
      quota.forgetClosed(now + MINUTE_MS);
      expect(quota.countsOf("203.0.113.2")).not.toBe(gone.addressCounts);
      expect(quota.countsOf("203.0.113.1")).toBe(staying.addressCounts);
      close(staying);
      quota.forgetClosed(now + 2 * MINUTE_MS);
      expect(quota.countsOf("203.0.113.1")).not.toBe(staying.addressCounts);
    });

    test("is bounded within the minute too, from however many addresses connections come and go", () => {
      limit({ connectionsPerAddress: 10, maxConnections: 20 });
      const staying = open("198.51.100.1");
      const first = open("2001:db8:0:ffff::1");
      close(first);
      for (let n = 0; n < 40; n += 1) close(open(`2001:db8:0:${n.toString(16)}::1`));
      expect(quota.countsOf("2001:db8:0:ffff::1")).not.toBe(first.addressCounts);
      expect(staying.addressCounts.open).toBe(1);
      close(staying);
    });

    test("is a hash under a key that no other process has", () => {
      const set = jest.spyOn(Map.prototype, "set");
      const remembered = ["one process", "another process"].map(() => {
        set.mockClear();
        limit({ connectionsPerAddress: 10 });
        open("203.0.113.1");
        return JSON.stringify(set.mock.calls);
      });
      set.mockRestore();
      expect(remembered[0]).toMatch(/^\[\["[\w-]{22}",\{"open":1/);
      expect(remembered[0]).not.toBe(remembered[1]);
    });
  });
});

describe("Whose limit it is:", () => {
  let counters: PodCounters;
  let connection: Connection;

  beforeEach(() => {
    counters = createPodCounters(new ServiceMetrics("ws-connector"));
    const registry = new ConnectionRegistry({
      settings: { envelopesPerSecond: 200, bytesPerSecond: 0 },
      quota: new ConnectionQuota({ maxConnections: 2, connectionsPerAddress: 0, unregisteredConnections: 0 }, () => {}),
      outboxBudget: new OutboxBudget({ outboxBytes: 65_536, outboxTotal: 0 }),
      agents: {
        congestion: { changed: () => {} } as unknown as CongestionNotices,
        registrar: { releaseAll: () => {} } as unknown as Registrar,
      },
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
});
