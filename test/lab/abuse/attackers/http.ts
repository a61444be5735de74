import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { FORWARDED } from "../support/addresses.ts";
import { API_KEY_AGENTS } from "../support/names.ts";
import type { Launch, Target } from "../support/target.ts";
import { some, untilOver } from "./agents.ts";
import { type Onslaught, strands } from "./onslaught.ts";
import { drained, ended, openSocket } from "./wire.ts";

const CONNECTIONS = 20;
/** Requests under way on one connection at once. */
const UNDER_WAY = 10;
/** As many as one address may send in a minute. */
const OF_AN_ADDRESS = 500;
const IDLE = 4000;
const OPENED_AT_ONCE = 100;
const SLOW = 1500;
const UNREAD = 200;
const UNREAD_REQUESTS = 200;
const FEEDBACK = JSON.stringify({ surface: "home", category: "x".repeat(100), message: "y".repeat(8000) });

/** A request, as the edge passes it on. */
interface Request {
  readonly path: string;
  readonly address: number;
  readonly body?: string;
  readonly lines?: readonly string[];
}

function textOf({ path, body, lines = [] }: Request, address: string): string {
  const head = [`Host: 127.0.0.1`, `${FORWARDED}: ${address}`, ...lines];
  if (body === undefined) return `GET ${path} HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n`;
  const fields = [...head, "Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`];
  return `POST ${path} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n${body}`;
}

/** Requests on connections that stay open, as fast as the answers come. */
function flood(target: Target, port: number, request: (n: number) => Request): Launch {
  let sent = 0;
  return strands(target, CONNECTIONS, async (on) => {
    const socket = await openSocket(port);
    if (socket === undefined) return;
    on.connections += 1;
    const send = () => {
      const made = request(sent);
      sent += 1;
      write(on, socket, textOf(made, on.address(made.address)));
    };
    onAnswers(socket, (count) => {
      for (let n = 0; n < count && !on.isOver; n += 1) send();
    });
    for (let n = 0; n < UNDER_WAY; n += 1) send();
    await ended(socket, on.over);
  });
}

export async function journeys(target: Target) {
  return flood(target, target.gateway, (n) => ({ path: "/api/onboarding/online-agents", address: n }));
}

export async function presenceOfAll(target: Target) {
  const path = (n: number) => `/api/onboarding/check-online?agent_id=agent://unknown-${n}`;
  return flood(target, target.gateway, (n) => ({ path: path(n), address: Math.floor(n / OF_AN_ADDRESS) }));
}

export async function guidesToAll(target: Target) {
  const path = (n: number) => `/api/public/session-request-guide?target_agent_id=agent://unknown-${n}`;
  return flood(target, target.reports, (n) => ({ path: path(n), address: Math.floor(n / OF_AN_ADDRESS) }));
}

export async function feedback(target: Target) {
  return flood(target, target.gateway, (n) => ({
    path: "/api/public/feedback",
    address: Math.floor(n / OF_AN_ADDRESS),
    body: FEEDBACK.replace("home", `surface-${n}`),
  }));
}

export async function guessedApiKeys(target: Target) {
  return flood(target, target.gateway, (n) => ({
    path: "/v1/messages/send",
    address: n,
    body: "{}",
    lines: [`X-Api-Key: rk_${String(n).padStart(36, "0")}`],
  }));
}

export async function idempotencyKeys(target: Target) {
  const from = `agent://${API_KEY_AGENTS}.a`;
  return flood(target, target.gateway, (n) => ({
    path: "/v1/messages/send",
    address: n % target.apiKeys.length,
    body: JSON.stringify({ from, to: "agent://unknown", message: `${n}` }),
    lines: [`X-Api-Key: ${target.apiKeys[n % target.apiKeys.length]}`, `Idempotency-Key: key-${n}`],
  }));
}

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

function write(on: Onslaught, socket: Socket, text: string): void {
  on.frames += 1;
  on.bytes += text.length;
  socket.write(text);
}

const STATUS_LINE = "HTTP/1.1 ";

/** Calls with how many answers began in what came in. */
function onAnswers(socket: Socket, answered: (count: number) => void): void {
  let rest = "";
  socket.on("data", (chunk: Buffer) => {
    const text = rest + chunk.toString("latin1");
    rest = text.slice(1 - STATUS_LINE.length);
    answered(text.split(STATUS_LINE).length - 1);
  });
}
