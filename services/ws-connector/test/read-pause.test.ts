import type { Duplex, Writable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "@jest/globals";
import * as ws from "ws";
import { ReadPause } from "../src/throttle/read-pause.ts";
import { fakeSocket } from "./connection-kit.ts";

/** The types of ws do not know it. */
const { Receiver } = ws as unknown as { Receiver: new (options: object) => Writable };

const texts = (letters: string) =>
  Buffer.concat([...letters].map((letter) => Buffer.concat([Buffer.of(0x81, 0x81, 0, 0, 0, 0), Buffer.from(letter)])));
const CLOSE = Buffer.of(0x88, 0x80, 0, 0, 0, 0);

let receiver: Writable;
let stream: Duplex;
let readPause: ReadPause;
/** The texts that ws handed over. */
let read: string;
/** How often a chunk, or its rest, was handed over. */
let handedOver: number;
let isSocketPaused: boolean;
/** What the owner does at each frame. */
let atFrame: (text: string) => void;

/** A socket of which the receiver alone is real. */
beforeEach(() => {
  read = "";
  handedOver = 0;
  isSocketPaused = false;
  atFrame = () => {};
  receiver = new Receiver({ isServer: true });
  receiver.on("message", (data) => {
    readPause.frame();
    read += data;
    atFrame(String(data));
  });
  const { socket, stream: under } = fakeSocket();
  const pause = () => (isSocketPaused = true);
  const resume = () => (isSocketPaused = false);
  stream = under;
  readPause = new ReadPause(
    { handedOver: () => (handedOver += 1) },
    Object.assign(socket, { _receiver: receiver, pause, resume }),
    stream,
  );
});

describe("a chunk", () => {
  test("is handed over to its end while nothing pauses its connection", () => {
    readPause.handOver(texts("abc"));
    expect([read, handedOver, isSocketPaused]).toEqual(["abc", 1, false]);
  });

  test("is handed over up to the frame that pauses its connection, and goes on behind it when the pause ends", async () => {
    atFrame = (text) => text === "b" && readPause.pause("rate");
    readPause.handOver(texts("abcd"));
    await setImmediate();
    expect([read, handedOver, isSocketPaused]).toEqual(["ab", 1, true]);
    readPause.resume("rate");
    expect(read).toBe("ab");
    await setImmediate();
    expect([read, handedOver, isSocketPaused]).toEqual(["abcd", 2, false]);
  });

  test("is handed over frame by frame where each frame pauses its connection", async () => {
    atFrame = () => readPause.pause("rate");
    readPause.handOver(texts("abc"));
    for (const soFar of ["a", "ab", "abc"]) {
      expect([read, isSocketPaused]).toEqual([soFar, true]);
      readPause.resume("rate");
      await setImmediate();
    }
    expect(isSocketPaused).toBe(false);
  });

  test("waits as long as any reason for the pause is left", async () => {
    atFrame = () => {
      readPause.pause("rate");
      readPause.pause("draining");
    };
    readPause.handOver(texts("ab"));
    readPause.resume("rate");
    await setImmediate();
    expect([read, handedOver, isSocketPaused]).toEqual(["a", 1, true]);
    readPause.resume("draining");
    await setImmediate();
    expect([read, handedOver]).toEqual(["ab", 2]);
  });

  test("waits where a new pause begins before the connection has gone on", async () => {
    atFrame = () => readPause.pause("rate");
    readPause.handOver(texts("ab"));
    readPause.resume("rate");
    readPause.pause("draining");
    await setImmediate();
    expect([read, isSocketPaused]).toEqual(["a", true]);
  });

  test("goes on when the connection is read for its close, whatever paused it", async () => {
    atFrame = () => readPause.pause("rate");
    readPause.handOver(texts("ab"));
    readPause.pause("closing");
    readPause.resumeAll();
    atFrame = () => {};
    await setImmediate();
    expect([read, isSocketPaused]).toEqual(["ab", false]);
  });

  test("of very many frames lets other connections have their turn, again and again", async () => {
    readPause.handOver(texts("x".repeat(600)));
    expect([read.length, isSocketPaused]).toEqual([256, true]);
    for (const soFar of [512, 600]) {
      await setImmediate();
      expect(read).toHaveLength(soFar);
    }
    expect(isSocketPaused).toBe(false);
  });

  test("that is passed over ends at the frame at which it was passed over", () => {
    atFrame = () => readPause.passOver();
    readPause.handOver(texts("abc"));
    expect([read, handedOver, isSocketPaused]).toEqual(["a", 1, false]);
  });

  test("that ws looks at by itself, because its socket is gone, ends at its first frame", () => {
    receiver.write(texts("abc"));
    expect([read, handedOver]).toEqual(["a", 0]);
  });
});

test.each([
  ["at once", () => {}],
  ["later", () => setImmediate()],
])(
  "What comes behind a close frame, %s, is dropped without an error, and the stream is read to its end",
  async (_, arrives) => {
    const errors: unknown[] = [];
    receiver.on("error", (err) => errors.push(err));
    readPause.handOver(Buffer.concat([texts("a"), CLOSE]));
    await arrives();
    readPause.handOver(texts("b"));
    await setImmediate();
    expect([read, handedOver, errors, stream.isPaused()]).toEqual(["a", 1, [], false]);
  },
);
