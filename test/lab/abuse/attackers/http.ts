import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { HTTP_LIMITS } from "relay-protocol/wire/limits.ts";
import { API_KEY_AGENTS, FORWARDED, type Launch, type Target } from "../target.ts";
import { drained, ended, type Onslaught, openSocket, some, strands, untilOver } from "./onslaught.ts";

/** Requests in great number, each of which is answered. */

/** An address sends twice as many as it may in a minute: every limit is reached, and there are many addresses. */
const BEYOND = 2;
const PUBLIC_OF_AN_ADDRESS = BEYOND * HTTP_LIMITS.publicRequestsPerMinute;
const KEYS_OF_AN_ADDRESS = BEYOND * HTTP_LIMITS.failedKeysPerMinute;
const FEEDBACK = JSON.stringify({ surface: "home", category: "x".repeat(100), message: "y".repeat(8000) });
const READS = { connections: 400, underWay: 1 };
const COMPRESSED = ["Accept-Encoding: br"];
const { trafficDaily, sessionJourneys, diagnostics, activationPlan, sessionRequestGuide } = SURFACES;
const REPORTS = [trafficDaily, sessionJourneys, diagnostics, activationPlan, sessionRequestGuide];
const { agentManifest, openapi, instructions, discoveryIndex, home } = SURFACES;
const DOCUMENTS = [agentManifest, openapi, instructions, discoveryIndex, home];

export async function readsOfReports(target: Target) {
  return reads(target, target.reports, REPORTS);
}

export async function readsOfDocuments(target: Target) {
  return reads(target, target.gateway, DOCUMENTS);
}

/** From one address, what is long and compressed for each request. */
function reads(target: Target, port: number, surfaces: readonly { readonly path: string }[]) {
  const path = (n: number) => surfaces[n % surfaces.length]?.path as string;
  return flood(target, port, (n) => ({ path: path(n), address: 0, lines: COMPRESSED }), READS);
}

export async function journeys(target: Target) {
  return flood(target, target.gateway, (n) => ({ path: "/api/onboarding/online-agents", address: n }));
}

export async function presenceOfAll(target: Target) {
  const path = (n: number) => `/api/onboarding/check-online?agent_id=agent://unknown-${n}`;
  return flood(target, target.gateway, (n) => ({ path: path(n), address: Math.floor(n / PUBLIC_OF_AN_ADDRESS) }));
}

export async function guidesToAll(target: Target) {
  const path = (n: number) => `/api/public/session-request-guide?target_agent_id=agent://unknown-${n}`;
  return flood(target, target.reports, (n) => ({ path: path(n), address: Math.floor(n / PUBLIC_OF_AN_ADDRESS) }));
}

export async function feedback(target: Target) {
  return flood(target, target.gateway, (n) => ({
    path: "/api/public/feedback",
    address: Math.floor(n / PUBLIC_OF_AN_ADDRESS),
    body: FEEDBACK.replace("home", `surface-${n}`),
  }));
}

export async function guessedApiKeys(target: Target) {
  return flood(target, target.gateway, (n) => ({
    path: "/v1/messages/send",
    address: Math.floor(n / KEYS_OF_AN_ADDRESS),
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

/** A request, as the edge passes it on. */
interface Request {
  readonly path: string;
  /** Which of the attack's addresses it comes from. */
  readonly address: number;
  readonly body?: string;
  readonly lines?: readonly string[];
}

interface Breadth {
  readonly connections: number;
  /** Requests under way on each at once. */
  readonly underWay: number;
}

const USUAL: Breadth = { connections: 20, underWay: 10 };

/** Requests on connections that stay open, as fast as the answers come. */
function flood(target: Target, port: number, request: (n: number) => Request, breadth = USUAL): Launch {
  const { connections, underWay } = breadth;
  let sent = 0;
  return strands(target, connections, async (on) => {
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
    for (let n = 0; n < underWay; n += 1) send();
    await ended(socket, on.over);
  });
}

function textOf({ path, body, lines = [] }: Request, address: string): string {
  const head = [`Host: 127.0.0.1`, `${FORWARDED}: ${address}`, ...lines];
  if (body === undefined) return `GET ${path} HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n`;
  const fields = [...head, "Content-Type: application/json", `Content-Length: ${Buffer.byteLength(body)}`];
  return `POST ${path} HTTP/1.1\r\n${fields.join("\r\n")}\r\n\r\n${body}`;
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
