import { setTimeout as delay } from "node:timers/promises";
import { FORWARDED } from "../support/addresses.ts";
import type { Launch, Target } from "../support/target.ts";
import { some, untilOver } from "./agents.ts";
import { strands } from "./onslaught.ts";
import { textOf, write } from "./requests.ts";
import { drained, ended, openSocket } from "./wire.ts";

/** Connections that are held: idle, sending slowly, or reading nothing. */

const IDLE = 4000;
const OPENED_AT_ONCE = 100;
const SLOW = 1500;
const UNREAD = 200;
const UNREAD_REQUESTS = 200;

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

/** Requests that come a byte at a time and never end. */
export async function slowRequests(target: Target) {
  return strands(target, SLOW, async (on, n) => {
    const socket = await openSocket(target.gateway);
    if (socket === undefined) return;
    on.connections += 1;
    write(on, socket, `GET /health HTTP/1.1\r\n${FORWARDED}: ${on.address(n)}\r\n`);
    while (!on.isOver && !socket.destroyed) {
      await delay(1000, undefined, { signal: on.over }).catch(() => {});
      socket.write("X");
    }
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
