import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { describe, expect, test } from "@jest/globals";
import { CLOSE_CODES } from "relay-protocol/wire/close-codes.ts";
import type { WebSocket } from "ws";
import type { AgentSocket } from "../support/agent.ts";
import type { Pod } from "../support/relay.ts";
import { until } from "../support/until.ts";
import { given } from "../support/use-relay.ts";
import { conformingRelay } from "./conforming.ts";

const relay = conformingRelay("alice", "carol");
const MAX_FRAME_BYTES = 32_768;
const pod = given(() => relay.startWsConnector());

/** A register, padded with white space between its members. */
function paddedRegister(bytes: number): string {
  const text = JSON.stringify(relay.envelope("carol", "agent.register"));
  return text + " ".repeat(bytes - text.length);
}

describe("a frame", () => {
  let socket: AgentSocket;

  const open = async () => {
    socket = await relay.connect(pod);
    return socket.socket;
  };

  test("that is binary closes the connection with 1003, even when it holds an envelope", async () => {
    const raw = await open();
    raw.send(Buffer.from(JSON.stringify(relay.envelope("carol", "agent.register"))));
    expect(await socket.untilClosed()).toBe(1003);
    expect(socket.frames).toHaveLength(1);
  });

  test.each([
    [CLOSE_CODES.binaryFrame, (raw: WebSocket) => raw.send(Buffer.from("{}"))],
    [CLOSE_CODES.badUtf8, (raw: WebSocket) => raw.send(Buffer.from([0xff]), { binary: false })],
    [CLOSE_CODES.frameTooLarge, (raw: WebSocket) => raw.send(paddedRegister(MAX_FRAME_BYTES + 1))],
  ])(
    "that closes the connection does so with the code and the reason that the documents tell: %j",
    async (told, send) => {
      const raw = await open();
      const closed = once(raw, "close");
      send(raw);
      const [code, reason] = await closed;
      expect([code, String(reason)]).toEqual([told.code, told.reason]);
    },
  );

  test("that is not UTF-8 closes the connection with 1007", async () => {
    const raw = await open();
    raw.send(Buffer.from([0x7b, 0xff, 0x7d]), { binary: false });
    expect(await socket.untilClosed()).toBe(1007);
  });

  test("over 32768 bytes closes the connection with 1009, however it is cut into fragments", async () => {
    let raw = await open();
    raw.send(paddedRegister(MAX_FRAME_BYTES + 1));
    expect(await socket.untilClosed()).toBe(1009);
    raw = await open();
    for (let n = 0; n < 5; n += 1) raw.send("x".repeat(8000), { fin: false });
    expect(await socket.untilClosed()).toBe(1009);
  });

  test("of 32768 bytes is read", async () => {
    await open();
    expect(await socket.answerTo(paddedRegister(MAX_FRAME_BYTES))).toMatchObject({ accepted: true });
  });

  test("that comes in fragments is read as one", async () => {
    const raw = await open();
    const text = JSON.stringify(relay.envelope("carol", "agent.register"));
    raw.send(text.slice(0, 50), { fin: false });
    raw.ping();
    raw.send(text.slice(50));
    await socket.next("ack", ({ frame }) => frame === "ack");
  });

  test("that is a ping is answered with its pong", async () => {
    const raw = await open();
    raw.ping("abc");
    const [data] = await once(raw, "pong");
    expect(String(data)).toBe("abc");
  });
});

test("A client that breaks the protocol or closes, and never hangs up, holds its place for two seconds at most", async () => {
  const small = await relay.startWsConnector({ RELAY_MAX_CONNECTIONS: "4" });
  const unmasked = [0x81, 0x01, 0x7b];
  const unknownOpcode = [0x83, 0x80, 0, 0, 0, 0];
  const compressed = [0xc1, 0x80, 0, 0, 0, 0];
  const close = [0x88, 0x80, 0, 0, 0, 0];
  const rude = await Promise.all(
    [unmasked, unknownOpcode, compressed, close].map((bytes) => sendAndStay(small, bytes)),
  );

  const next: AgentSocket[] = [];
  const takesAnother = async () => {
    await relay.connect(small).then(
      (socket) => next.push(socket),
      () => {},
    );
    return next.length === rude.length;
  };
  await until("the pod takes as many other connections", takesAnother, 4000);
  for (const stream of rude) stream.destroy();
});

/** Sends bytes over a websocket made by hand, and keeps its own half of the connection open whatever comes back. */
async function sendAndStay({ port }: Pod, bytes: readonly number[]): Promise<Socket> {
  const stream = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  stream.on("error", () => {});
  stream.write(
    "GET /ws HTTP/1.1\r\nHost: relay\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
  );
  await once(stream, "data");
  stream.resume().write(Buffer.from(bytes));
  return stream;
}

test("A connection that breaks the protocol takes its agents offline", async () => {
  const alice = await relay.online(pod, "alice");
  const rude = await relay.online(pod, "carol");
  rude.socket.pause();
  rude.socket.send(Buffer.from([0xff]), { binary: false });
  await until("carol is stale", async () => {
    const { target_delivery } = await alice.ask(relay.envelope("alice", "message.send", { to: "agent://carol" }));
    return target_delivery.status === "stale";
  });
});
