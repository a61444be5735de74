import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { Duplex } from "node:stream";
import { afterEach, beforeEach, describe, expect, jest, test } from "@jest/globals";
import type { CongestionMarks, RouteMark } from "relay-window/presence/routes.ts";
import { unavailable } from "relay-window/redis/redis-calls.ts";
import { WebSocket, WebSocketServer } from "ws";
import { until } from "../../../test/support/until.ts";
import { CongestionNotices } from "../src/agents/congestion.ts";
import { Ownership } from "../src/agents/ownership.ts";
import type { Connection } from "../src/connection/connection.ts";
import { Outbox, OutboxBudget, type OutboxLimit } from "../src/connection/outbox.ts";

describe("One outbox:", () => {
  let server: WebSocketServer;
  let client: WebSocket;
  let socket: WebSocket;
  let stream: Duplex;
  let received: string[];

  beforeEach(async () => {
    server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
    await once(server, "listening");
    const connected = once(server, "connection");
    client = new WebSocket(`ws://127.0.0.1:${(server.address() as AddressInfo).port}`);
    received = [];
    client.on("message", (data, isBinary) => received.push(isBinary ? "binary" : data.toString()));
    const [accepted, req] = await connected;
    socket = accepted;
    stream = req.socket;
    await until("the client is open", () => client.readyState === client.OPEN);
  });

  afterEach(async () => {
    client.terminate();
    await once(socket, "close");
    server.close();
  });

  function outboxOf(): Outbox {
    const owner = { congestionChanged: () => {}, readsTooSlowly: () => {} };
    return new Outbox(owner, new OutboxBudget({ outboxBytes: 1_048_576, outboxTotal: 0 }), socket, stream);
  }

  test("Texts of every length, in every script, arrive as they were sent and in their order", async () => {
    const lengths = [0, 1, 125, 126, 127, 65_535, 65_536, 70_000];
    const texts = [...lengths.map((length) => "x".repeat(length)), "ä".repeat(63), "€".repeat(21_846), "🦊".repeat(32)];
    const outbox = outboxOf();
    for (const text of texts) outbox.send(text);
    await until("all have arrived", () => received.length === texts.length);
    expect(received).toEqual(texts);
  });

  test("What one tick brings leaves in one write", async () => {
    const write = jest.spyOn(stream, "write");
    const outbox = outboxOf();
    for (let n = 0; n < 50; n += 1) outbox.send(`text ${n}`);
    await until("all have arrived", () => received.length === 50);
    expect(write).toHaveBeenCalledTimes(1);
  });

  test("What waited when the connection is closed arrives before the close, and nothing after it", async () => {
    const closed = once(client, "close");
    const outbox = outboxOf();
    outbox.send("the last word");
    outbox.whenTaken(() => socket.close(4409, "superseded"));
    outbox.send("too late");
    const [code] = await closed;
    expect({ code, received }).toEqual({ code: 4409, received: ["the last word"] });
  });

  test("A closed outbox waits for nothing", () => {
    const outbox = outboxOf();
    outbox.close();
    let isTold = false;
    outbox.whenTaken(() => {
      isTold = true;
    });
    expect(isTold).toBe(true);
  });

  test("A tick whose socket began to close meanwhile writes nothing behind the close", async () => {
    const closed = once(client, "close");
    outboxOf().send("overtaken");
    socket.close(1001);
    const [code] = await closed;
    expect({ code, received }).toEqual({ code: 1001, received: [] });
  });
});

describe("All outboxes:", () => {
  const KIB = 1024;
  /** With the four bytes of its header, one KiB on the wire. */
  const TEXT = "x".repeat(KIB - 4);

  /** A reader that takes one write when it is told to, and its outbox. */
  class Reader {
    readonly outbox: Outbox;
    /** What its connection was told. */
    readonly told: (OutboxLimit | "congested" | "cleared")[] = [];
    readonly #taken: (() => void)[] = [];
    readonly stream: Duplex;

    constructor(all: OutboxBudget) {
      this.stream = new Duplex({
        read: () => {},
        write: (_chunk, _encoding, done) => void this.#taken.push(done),
        writev: (_chunks, done) => void this.#taken.push(done),
      });
      const owner = {
        congestionChanged: () => this.told.push(this.outbox.isCongested ? "congested" : "cleared"),
        readsTooSlowly: (limit: OutboxLimit) => {
          this.told.push(limit);
          this.outbox.close();
        },
      };
      this.outbox = new Outbox(owner, all, { readyState: 1, OPEN: 1 } as WebSocket, this.stream);
    }

    /** Sends one KiB as often as said, in a write each. */
    sendKib(count: number): void {
      for (let n = 0; n < count; n += 1) {
        this.outbox.send(TEXT);
        this.outbox.flush();
      }
    }

    takeOne(): void {
      this.#taken.shift()?.();
    }

    /** Takes what as many writes brought, of the outbox. */
    async take(count: number): Promise<void> {
      for (let n = 0; n < count; n += 1) {
        const before = this.stream.writableLength;
        this.takeOne();
        await until("the write is done", () => this.stream.writableLength < before && this.outbox.bytes < before);
      }
    }
  }

  let all: OutboxBudget;
  let reader: Reader;

  const looks = (count: number) => {
    for (let n = 0; n < count; n += 1) all.check();
  };

  beforeEach(() => {
    all = new OutboxBudget({ outboxBytes: 16 * KIB, outboxTotal: 100 * KIB });
    reader = new Reader(all);
  });

  test("A connection is congested from more than half of an outbox until an eighth, and told so once each time", async () => {
    reader.sendKib(8);
    expect([reader.told, all.congested]).toEqual([[], 0]);
    reader.sendKib(4);
    expect([reader.told, all.congested]).toEqual([["congested"], 1]);
    await reader.take(9);
    expect(reader.told).toEqual(["congested"]);
    await reader.take(1);
    expect([reader.told, all.congested]).toEqual([["congested", "cleared"], 0]);
    reader.sendKib(7);
    expect(reader.told).toEqual(["congested", "cleared", "congested"]);
  });

  test("What a reader took is known write by write, however many wait", async () => {
    reader.sendKib(20);
    for (let left = 19; left > 0; left -= 1) {
      await reader.take(1);
      expect([reader.outbox.bytes, all.bytes, all.mostBytes]).toEqual(Array(3).fill(left * KIB));
    }
  });

  test("Four times an outbox may wait, and no more", () => {
    reader.sendKib(64);
    expect(reader.told).toEqual(["congested"]);
    reader.sendKib(1);
    expect([reader.told, all.bytes, all.congested]).toEqual([["congested", "outbox"], 0, 0]);
  });

  describe("an outbox of which nothing drains", () => {
    test("is given up after ten looks in a row, be it ever so little that waits", () => {
      reader.sendKib(1);
      looks(10);
      expect(reader.told).toEqual([]);
      looks(1);
      expect(reader.told).toEqual(["outbox_stalled"]);
    });

    test("is not, when the last that waited was written by ws, and is gone", async () => {
      reader.sendKib(1);
      reader.stream.write("a ping");
      await reader.take(1);
      expect(reader.outbox.bytes).toBe("a ping".length);
      looks(10);
      reader.takeOne();
      await until("it is gone", () => reader.stream.writableLength === 0);
      looks(30);
      expect([reader.told, all.bytes]).toEqual([[], 0]);
    });

    test("is not, when something drained between two of them", async () => {
      reader.sendKib(3);
      for (let n = 0; n < 2; n += 1) {
        looks(10);
        await reader.take(1);
      }
      looks(10);
      expect(reader.told).toEqual([]);
      await reader.take(1);
      looks(30);
      reader.sendKib(1);
      looks(10);
      expect(reader.told).toEqual([]);
    });
  });

  describe("what may wait in all outboxes together", () => {
    test("is made room for by the fullest, not by who is sent to last", () => {
      const others = [10, 50, 30].map((kib) => {
        const other = new Reader(all);
        other.sendKib(kib);
        return other;
      });
      expect(all.bytes).toBe(90 * KIB);
      reader.sendKib(11);
      expect([reader, ...others].map(({ told }) => told.filter((limit) => limit === "outbox_total").length)).toEqual([
        0, 0, 1, 0,
      ]);
      expect(all.bytes).toBe(51 * KIB);
    });

    test("is made room for once by an outbox that has texts of this tick to write yet", () => {
      const fullest = new Reader(all);
      fullest.sendKib(60);
      reader.sendKib(39);
      for (let n = 0; n < 3; n += 1) fullest.outbox.send(TEXT);
      reader.sendKib(2);
      expect(fullest.told).toEqual(["congested", "outbox_total"]);
      expect(all.bytes).toBe(41 * KIB);
    });

    test("is without bound where the setting is 0", () => {
      all = new OutboxBudget({ outboxBytes: 16 * KIB, outboxTotal: 0 });
      const readers = Array.from({ length: 4 }, () => new Reader(all));
      for (const one of readers) one.sendKib(60);
      expect([all.bytes, readers.flatMap(({ told }) => told)]).toEqual([240 * KIB, Array(4).fill("congested")]);
    });

    test("counts nothing of a connection that closed, whatever its socket still takes", async () => {
      reader.sendKib(12);
      reader.outbox.close();
      expect([all.bytes, all.congested]).toEqual([0, 0]);
      looks(30);
      expect(reader.told).toEqual(["congested"]);
    });
  });
});

describe("Marks of congestion:", () => {
  let calls: { readonly marks: readonly RouteMark[]; readonly answer: PromiseWithResolvers<void> }[];
  let notices: CongestionNotices;

  /** A connection that owns an agent of the same name under the epoch 7. */
  function connectionOf(id: string) {
    const agents = new Ownership(id);
    agents.apply(`agent://${id}`, { kind: "granted", epoch: 7, key: "k", heardAt: 0 });
    const connection = { id, agents, isCongested: true };
    return connection as { -readonly [Member in keyof typeof connection]: (typeof connection)[Member] } & Connection;
  }

  const said = () =>
    calls.map(({ marks }) => marks.map(({ agent, isCongested }) => `${agent.slice("agent://".length)} ${isCongested}`));

  beforeEach(() => {
    calls = [];
    const write = (marks: readonly RouteMark[]) => {
      const answer = Promise.withResolvers<void>();
      calls.push({ marks, answer });
      return answer.promise;
    };
    notices = new CongestionNotices({ write } as unknown as CongestionMarks);
  });

  test("One call is under way at a time, and the next says what is true by then", async () => {
    const [one, two] = [connectionOf("one"), connectionOf("two")];
    notices.changed(one);
    notices.changed(two);
    Object.assign(one, { isCongested: false });
    notices.changed(one);
    expect(said()).toEqual([["one true"]]);
    const sent = notices.flush();
    calls[0]?.answer.resolve();
    await Promise.resolve();
    await Promise.resolve();
    expect(said().slice(1)).toEqual([["two true", "one false"]]);
    calls[1]?.answer.resolve();
    await sent;
    await notices.flush();
    expect(calls).toHaveLength(2);
  });

  test("What Redis did not take is said again with the next flush", async () => {
    notices.changed(connectionOf("one"));
    const failed = notices.flush();
    calls[0]?.answer.reject(unavailable());
    await failed;
    const again = notices.flush();
    calls[1]?.answer.resolve();
    await again;
    await notices.flush();
    expect(said()).toEqual([["one true"], ["one true"]]);
  });

  test("Marked are all agents of a connection, under the epochs that are known, and those whose register is under way", () => {
    const one = connectionOf("one");
    one.agents.apply("agent://asked", { kind: "requested" });
    one.agents.apply("agent://again", { kind: "granted", epoch: 8, key: "k", heardAt: 0 });
    one.agents.apply("agent://again", { kind: "requested" });
    one.agents.apply("agent://unanswered", { kind: "unanswered", key: "k" });
    notices.changed(one);
    const epochs = calls[0]?.marks.map(({ agent, epoch }) => [agent, epoch]);
    expect(Object.fromEntries(epochs ?? [])).toEqual({
      "agent://one": 7,
      "agent://asked": null,
      "agent://again": null,
      "agent://unanswered": null,
    });
  });
});
