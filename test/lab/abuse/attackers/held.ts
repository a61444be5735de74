import { setTimeout as delay } from "node:timers/promises";
import { FORWARDED } from "../support/addresses.ts";
import type { Launch, Target } from "../target.ts";
import { some, untilOver } from "./agents.ts";
import { strands } from "./onslaught.ts";
import { textOf, write } from "./http-load.ts";
import { drained, ended, openSocket } from "./wire.ts";

/** Connections that are held: idle, sending slowly, or reading nothing. */

const IDLE = 4000;
const OPENED_AT_ONCE = 100;
const SLOW = 1500;
const UNREAD = 200;
const UNREAD_REQUESTS = 200;
const BODY = "Host: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 10000\r\n";
/** Of 50 strands, as many connections a second as a client makes that is refused each time. */
const LEAVING = 50;
const LEAVING_EVERY_MS = 50;
const LEAVES = ["GET /ws HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n", "CONNECT relay:1 HTTP/1.1\r\n"];

/** Connections that were used once and then kept, each by another client of the edge. */
export async function idle(target: Target) {
  return idleAt(target, target.gateway);
}

export async function idleAtFewFiles(target: Target) {
  return idleAt(target, target.smallGateway);
}

function idleAt(target: Target, port: number): Launch {
  return strands(target, OPENED_AT_ONCE, async (on, n) => {
    for (let k = n; k < IDLE && !on.isOver; k += OPENED_AT_ONCE) {
      const socket = await openSocket(port);
      if (socket === undefined) continue;
      on.connections += 1;
      write(on, socket, textOf({ path: "/robots.txt", address: k }, on.address(k)));
      socket.resume();
    }
    await untilOver(on.over);
  });
}

/** Requests that come a byte at a time and never end, every other one in its header. */
export async function slowRequests(target: Target) {
  return strands(target, SLOW, async (on, n) => {
    const socket = await openSocket(target.gateway);
    if (socket === undefined) return;
    on.connections += 1;
    const cutOff = n % 2 === 0 ? "a header that does not end is cut off" : "a body that does not end is cut off";
    on.expects(cutOff);
    const head = `POST /api/self-test HTTP/1.1\r\n${FORWARDED}: ${on.address(n)}\r\n`;
    socket.resume();
    write(on, socket, n % 2 === 0 ? head : `${head}${BODY}\r\n`);
    while (!on.isOver && !socket.destroyed) {
      await delay(1000, undefined, { signal: on.over }).catch(() => {});
      socket.write("X");
    }
    if (!on.isOver) on.saw(cutOff);
  });
}

/** Asks for long answers again and again, and reads none. */
export async function unread(target: Target) {
  const asked = some(2, (n) =>
    textOf({ path: ["/openapi.json", "/api/ops/session-journeys"][n] ?? "", address: n }, "192.0.2.1"),
  );
  return strands(target, UNREAD, async (on, n) => {
    const socket = await openSocket(n % 2 === 0 ? target.gateway : target.reports);
    if (socket === undefined) return;
    on.connections += 1;
    socket.pause();
    for (let k = 0; k < UNREAD_REQUESTS && !on.isOver; k += 1) {
      write(on, socket, asked[n % 2] as string);
      await drained(socket, on.over);
    }
    await ended(socket, on.over);
  });
}

/** Asks to leave HTTP behind an answer that is still open: an upgrade of a websocket, or CONNECT. */
export async function leaving(target: Target) {
  return strands(target, LEAVING, async (on, n) => {
    const socket = await openSocket(target.connectors[0]);
    if (socket === undefined) return;
    on.connections += 1;
    const leave = LEAVES[n % LEAVES.length] as string;
    const closed = `who asks ${leave.split("\r\n", 1)[0]} behind an open answer is closed`;
    on.expects(closed);
    const ask = textOf({ path: "/health", address: n }, on.address(n));
    write(on, socket, `${ask}${leave}Host: 127.0.0.1\r\n\r\n`);
    socket.resume();
    await ended(socket, on.over);
    if (!on.isOver) on.saw(closed);
    socket.destroy();
    await delay(LEAVING_EVERY_MS);
  });
}
