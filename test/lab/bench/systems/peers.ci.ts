import { once } from "node:events";
import { expect, test } from "@jest/globals";
import { WebSocket } from "ws";
import { until } from "../../../support/until.ts";
import { Generator } from "../load/generator.ts";
import { TARGETS } from "../plan.ts";
import { startPeer } from "./peers.ts";
import type { PeerName } from "./system.ts";

const PEERS: readonly PeerName[] = ["bare", "bare-acks", "socket.io", "socket.io-sharded"];
const PACE = { perSecond: 100, warmUpMs: 0, measureMs: 300 };

test.each(PEERS)("%s delivers all, from one server to the other", async (name) => {
  await using under = await startPeer(name, () => []);
  await using generator = await Generator.start(under.speech);
  await generator.pair(under.ports, TARGETS.slice(0, 2));
  // It throws when a message is lost.
  const { latency } = await generator.pace({ ...PACE, pids: under.pids });
  expect(latency.p50).toBeGreaterThan(0);
});

test("the bare relay that acks answers the sender of each message, with about 150 bytes", async () => {
  await using under = await startPeer("bare-acks", () => []);
  const socket = new WebSocket(`ws://127.0.0.1:${under.ports[0]}`);
  await once(socket, "open");
  const texts: string[] = [];
  socket.on("message", (data) => texts.push(String(data)));
  socket.send(JSON.stringify({ register: ["agent://own"] }));
  await until("it is registered", () => texts.length === 1);
  const message = JSON.stringify({ id: "message-1", to: "agent://own", payload: {} });
  socket.send(message);
  await until("delivery and ack are there", () => texts.length === 3);
  const [ack = ""] = texts.slice(1).filter((text) => text !== message);
  expect(JSON.parse(ack)).toMatchObject({ ack: "message-1", accepted: true });
  expect(Math.abs(Buffer.byteLength(ack) - 150)).toBeLessThanOrEqual(10);
  socket.terminate();
});
