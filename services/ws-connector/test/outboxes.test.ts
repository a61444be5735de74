import { Duplex } from "node:stream";
import { beforeEach, describe, expect, test } from "@jest/globals";
import type { WebSocket } from "ws";
import { until } from "../../../test/support/until.ts";
import { Outbox } from "../src/outbox.ts";
import { Outboxes, type OutboxLimit } from "../src/outboxes.ts";

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

  constructor(all: Outboxes) {
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

let all: Outboxes;
let reader: Reader;

const looks = (count: number) => {
  for (let n = 0; n < count; n += 1) all.check();
};

beforeEach(() => {
  all = new Outboxes({ outboxBytes: 16 * KIB, outboxTotal: 100 * KIB });
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

  test("is without bound where the setting is 0", () => {
    all = new Outboxes({ outboxBytes: 16 * KIB, outboxTotal: 0 });
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
