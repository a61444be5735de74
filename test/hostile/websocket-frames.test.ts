import { beforeAll, describe, expect, test } from "@jest/globals";
import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";
import type { AgentSocket } from "../support/agent.ts";
import { fc } from "../support/fast-check.ts";
import { until } from "../support/until.ts";
import { type ClientFrame, closeFrame, encode, frame, isCloseCode, OPCODES, outcomeOf } from "./support/frames.ts";
import { RawWebsocket } from "./support/raw-websocket.ts";
import { type AttackedService, MARK, relayUnderAttack } from "./support/under-attack.ts";

const { continuation, text, binary, close, ping, pong } = OPCODES;
const { relay, start } = relayUnderAttack("alice", "bob-hmac");
const QUESTIONS = ["still there?", "and all answered?"];
let pod: AttackedService;
let bystander: AgentSocket;

beforeAll(async () => {
  pod = await start("ws-connector", { RELAY_ENVELOPES_PER_SECOND: "0", RELAY_BYTES_PER_SECOND: "0" });
  bystander = await relay.online(pod, "bob-hmac");
  for (let n = 0; n < 20; n += 1) await attack(frame(text, "warm up"), frame(text, Buffer.of(0xff)));
  await pod.remember();
});

/** Others are answered while, and after, one client misbehaves. */
async function expectOthersServed(): Promise<void> {
  const message = relay.envelope("bob-hmac", "message.send", { to: "agent://never-seen" });
  expect(await bystander.ask(message)).toMatchObject({ accepted: true });
}

/** A connection that has registered: of others few frames are read. */
async function open(): Promise<RawWebsocket> {
  const socket = await RawWebsocket.open(pod.port);
  socket.send([frame(text, JSON.stringify(relay.envelope("alice", "agent.register")))]);
  await until("it is registered", () => socket.answers.length === 1);
  socket.texts.splice(0);
  return socket;
}

/** The close code that these frames earn a client, or null when the connection goes on: it still answers a ping. */
async function attack(...frames: readonly ClientFrame[]): Promise<number | null> {
  const socket = await open();
  socket.send(frames);
  const code = await codeOrPong(socket);
  await socket.end();
  return code;
}

/** The second ping is read after the answers to what came with the first have left: they leave behind its pong. */
async function codeOrPong(socket: RawWebsocket): Promise<number | null> {
  // After a close of its own it waits for the client's answer, which does not come.
  const isClosed = () => socket.closeCode !== null || socket.isEnded;
  for (const question of QUESTIONS) {
    socket.send([frame(ping, question)]);
    const isAnswered = () => socket.pongs.some((data) => String(data) === question);
    await until("the relay closes the connection, or goes on", () => isAnswered() || isClosed());
    if (!isAnswered()) return socket.closeCode ?? 1006;
  }
  return null;
}

const part = (opcode: number, payload: Uint8Array | string = "") => frame(opcode, payload, { fin: false });

const RESERVED_OPCODES = [3, 4, 5, 6, 7, 11, 12, 13, 14, 15];
const RSV_BITS = [1, 2, 3, 4, 5, 6, 7];

const BREACHES: Record<string, readonly ClientFrame[][]> = {
  "a frame without mask": [text, binary, close, ping, pong].map((opcode) => [frame(opcode, "{}", { masked: false })]),
  "a reserved opcode": RESERVED_OPCODES.map((opcode) => [frame(opcode, MARK)]),
  "a reserved bit, compression among them": RSV_BITS.map((rsv) => [frame(text, "{}", { rsv })]),
  "a reserved bit on a control frame": RSV_BITS.map((rsv) => [frame(ping, "", { rsv })]),
  "a reserved bit on a continuation": RSV_BITS.map((rsv) => [part(text, "{"), frame(continuation, "}", { rsv })]),
  "a continuation of nothing": [[frame(continuation, "{}")], [part(text), frame(continuation), frame(continuation)]],
  "a message within another": [
    [part(text, "{"), frame(text, "{}")],
    [part(text, "{"), part(binary)],
    [part(text), part(continuation), frame(text)],
  ],
  "a control frame in fragments": [[part(ping, "a")], [part(pong)], [part(close)]],
  "a control frame over 125 bytes": [ping, pong, close].flatMap((opcode) => [
    [frame(opcode, "x".repeat(126))],
    [frame(opcode, "x", { lengthBytes: 2 })],
    [frame(opcode, "", { lengthBytes: 8, announced: 2n ** 63n })],
  ]),
  "a close frame of one byte": [[frame(close, "x")]],
};

describe.each(Object.entries(BREACHES))("a client that sends %s", (_breach, attacks) => {
  test("is closed with 1002, and nobody else notices", async () => {
    for (const frames of attacks) expect([frames, await attack(...frames)]).toEqual([frames, 1002]);
    await expectOthersServed();
  });
});

/** A lone continuation, overlongs, a surrogate, beyond the last code point, five bytes, cut short. */
const NOT_UTF8 = [
  [0x80],
  [0xff, 0xfe],
  [0xc0, 0xaf],
  [0xc0, 0x80],
  [0xe0, 0x80, 0xaf],
  [0xed, 0xa0, 0x80],
  [0xf4, 0x90, 0x80, 0x80],
  [0xf8, 0x88, 0x80, 0x80, 0x80],
  [0xf0, 0x9f, 0x98],
].map((bytes) => Buffer.from(bytes));

describe("a close frame", () => {
  test("is answered with its own code when that may stand there, and else with 1002", async () => {
    const odd = [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1999, 2000, 2999, 5000, 65_535];
    for (const code of odd) expect([code, await attack(closeFrame(code, "reason"))]).toEqual([code, 1002]);
    for (const code of [1000, 1003, 1007, 1011, 1014, 3000, 4403, 4999]) {
      expect(await attack(closeFrame(code, "reason"))).toBe(code);
    }
  });

  test("whose reason is not UTF-8 is answered with 1007", async () => {
    for (const reason of NOT_UTF8) expect([reason, await attack(closeFrame(1000, reason))]).toEqual([reason, 1007]);
  });

  test("ends the connection: nothing after it is read", async () => {
    const socket = await open();
    socket.send([closeFrame(1000), frame(text, "{}"), frame(ping)]);
    expect(await socket.untilClosed()).toBe(1000);
    expect([socket.answers, socket.pongs]).toEqual([[], []]);
    await socket.end();
  });
});

describe("a text that is not UTF-8", () => {
  test("closes the connection with 1007, whole or in fragments", async () => {
    for (const bytes of NOT_UTF8) {
      const padded = Buffer.concat([Buffer.from('{"payload":"'), bytes, Buffer.from('"}')]);
      expect([bytes, await attack(frame(text, padded))]).toEqual([bytes, 1007]);
      for (const at of [12, 13, padded.length - 3]) {
        const frames = [part(text, padded.subarray(0, at)), frame(continuation, padded.subarray(at))];
        expect([bytes, at, await attack(...frames)]).toEqual([bytes, at, 1007]);
      }
    }
  });

  test("is told from a character that fragments cut in two", async () => {
    const bytes = Buffer.from('"😀"');
    const fragments = [...bytes].map((byte, at) => part(at === 0 ? text : continuation, Buffer.of(byte)));
    expect(await attack(...fragments, frame(continuation))).toBeNull();
  });
});

describe("a length", () => {
  test("over the limit, up to what no number holds, closes with 1009 before any of it comes", async () => {
    const lengths = [32_769n, 2n ** 32n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n, 2n ** 64n - 1n];
    for (const announced of lengths) {
      for (const opcode of [text, binary]) {
        const code = await attack(frame(opcode, "", { lengthBytes: 8, announced }));
        expect([announced, opcode, code]).toEqual([announced, opcode, 1009]);
      }
    }
  });

  test("that fragments exceed together closes with 1009 at the announcement", async () => {
    const announced = frame(continuation, "", { fin: false, lengthBytes: 2, announced: 32_768n });
    expect(await attack(part(text, "x"), announced)).toBe(1009);
  });

  test("that takes more bytes than it needs says the same, and no more is read", async () => {
    const socket = await open();
    socket.send([frame(text, "{}", { lengthBytes: 2 }), frame(text, "{}", { lengthBytes: 8 })]);
    expect(await codeOrPong(socket)).toBeNull();
    expect(socket.answers).toHaveLength(2);
    await socket.end();
  });
});

describe("a message that never ends", () => {
  test("leaves the connection answering pings, and others theirs", async () => {
    const socket = await open();
    socket.send([part(text, '{"payload":')]);
    for (let n = 0; n < 20; n += 1) {
      socket.send([part(continuation, "x")]);
      expect(await codeOrPong(socket)).toBeNull();
    }
    expect(socket.answers).toEqual([]);
    await expectOthersServed();
    await socket.end();
  });

  test("closes with 1008 when it comes in ever more empty fragments", async () => {
    const fragments = Array.from({ length: 2 * CONNECTION_LIMITS.maxFragments }, () => part(continuation));
    expect(await attack(part(text), ...fragments)).toBe(1008);
  });

  test("is forgotten with its connection, a hundred times over", async () => {
    const halves = await Promise.all(Array.from({ length: 100 }, () => RawWebsocket.open(pod.port)));
    for (const half of halves) half.send([part(text, "x".repeat(30_000))]);
    await Promise.all(halves.map((half) => codeOrPong(half)));
    await Promise.all(halves.map((half) => half.end()));
    await expectOthersServed();
  });
});

test("A client that is closed, and has more on the way than is read of it, harms nobody", async () => {
  // It never registered: the relay lets the connection of a registered one go only after 30 s.
  const socket = await RawWebsocket.open(pod.port);
  const behind = Array.from({ length: 11 }, () => frame(text, Buffer.alloc(30_000, "x")));
  socket.send([frame(binary, "x"), ...behind]);
  expect(await codeOrPong(socket)).toBe(1003);
  await socket.end();
  await expectOthersServed();
});

const bytes = fc.oneof(
  fc.string({ unit: "binary", maxLength: 40 }).map((string) => Buffer.from(string)),
  fc.uint8Array({ maxLength: 140 }),
  fc.integer({ min: 20_000, max: 33_000 }).map((length) => Buffer.alloc(length, "x")),
  fc.integer({ min: 0, max: 65_535 }).map((code) => Buffer.of(code >> 8, code & 0xff)),
);
const anyFrame = fc
  .record({
    opcode: fc.oneof(
      { weight: 8, arbitrary: fc.constantFrom<number[]>(continuation, text, ping, pong) },
      { weight: 1, arbitrary: fc.nat(15) },
    ),
    payload: bytes,
    fin: fc.boolean(),
    rsv: fc.oneof({ weight: 15, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(7) }),
    masked: fc.oneof({ weight: 15, arbitrary: fc.constant(true) }, { weight: 1, arbitrary: fc.constant(false) }),
  })
  .map(({ opcode, payload, ...fields }) => frame(opcode, payload, fields));
/** No more than the relay reads behind a close: beyond it, the connection of a registered client stays for 30 s. */
const anyFrames = fc
  .array(anyFrame, { minLength: 1, maxLength: 12 })
  .filter((frames) => Buffer.concat(frames.map(encode)).length < CONNECTION_LIMITS.closingBytes);

describe("whatever a client sends", () => {
  test("any frames, cut anyhow, get the answers, pongs and close code that the RFC asks for", async () => {
    const property = fc.asyncProperty(anyFrames, fc.constantFrom(1, 7, 1000, 65_536), async (frames, pieceBytes) => {
      const { pongs: most, ...expected } = outcomeOf(frames);
      const socket = await open();
      socket.send(frames, frames.some(({ payload }) => payload.length > 1000) ? 1000 : pieceBytes);
      const closed = await codeOrPong(socket);
      const pongs = socket.pongs.filter((data) => !QUESTIONS.includes(String(data))).length;
      expect({ answers: socket.answers.length, closed }).toEqual(expected);
      expect(pongs).toBeLessThanOrEqual(most);
      await socket.end();
    });
    await fc.assert(property, { numRuns: 150 });
    await expectOthersServed();
  });

  test("any bytes end in a close code of the RFC, or in none, as soon as the client has said all", async () => {
    const property = fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 300 }), async (bytes) => {
      const socket = await open();
      socket.write(bytes);
      socket.finish();
      const code = await socket.untilClosed();
      expect(isCloseCode(code) || code === 1005 || code === 1006).toBe(true);
      await socket.end();
    });
    await fc.assert(property, { numRuns: 100 });
    await expectOthersServed();
  });
});
