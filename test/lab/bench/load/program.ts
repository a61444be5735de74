import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { instant, type Pids, type Span, spanOf } from "../../accounting.ts";
import { takeOrders } from "../../ordered-process.ts";
import {
  type AgentRelayDialect,
  agentRelay,
  BARE,
  BARE_ACKS,
  type Dialect,
  NATS,
  SOCKET_IO,
  type Speech,
} from "./dialects.ts";
import { type Pace, Pairs, type Press, pace, press } from "./pairs.ts";
import { WebSocketClient } from "./websocket.ts";

/** The load generator: a process of its own, which does one order after the other. */

/** What it can be told to do; the names are those of the functions. */
export type Order =
  | { readonly order: "speak"; readonly speech: Speech }
  | { readonly order: "pair"; readonly ports: readonly number[]; readonly targets: readonly string[] }
  | ({ readonly order: "press" } & Press)
  | ({ readonly order: "pace" } & Pace)
  | {
      readonly order: "gather";
      readonly ports: readonly number[];
      readonly connections: number;
      readonly agentsEach: number;
    }
  | ({ readonly order: "beat" } & Beat)
  | ({ readonly order: "post" } & Posts);

async function carryOut(order: Order): Promise<unknown> {
  switch (order.order) {
    case "speak":
      dialect = dialectOf(order.speech);
      return undefined;
    case "pair":
      return await pairs.connect(dialect, order.ports, order.targets);
    case "press":
      return await press(pairs, order);
    case "pace":
      return await pace(pairs, order);
    case "gather":
      return await crowd.add(dialect, order.ports, order);
    case "beat":
      return await crowd.beat(dialect as AgentRelayDialect, order);
    case "post":
      return await post(order);
  }
}

function dialectOf(speech: Speech): Dialect {
  if (speech.dialect === "agent-relay") return agentRelay(speech);
  return { bare: BARE, "bare-acks": BARE_ACKS, "socket.io": SOCKET_IO, nats: NATS }[speech.dialect];
}

/** Handshakes under way at once. */
const AT_ONCE = 50;
const TICK_MS = 1;

interface Member {
  readonly client: WebSocketClient;
  readonly agents: readonly string[];
}

/** Agents that are there: registered, and otherwise silent until they are told to send heartbeats. */
class Crowd {
  readonly #members: Member[] = [];
  #answers = 0;

  /** Adds connections, on the ports in turn, with so many agents each. */
  async add(
    dialect: Dialect,
    ports: readonly number[],
    { connections, agentsEach }: { readonly connections: number; readonly agentsEach: number },
  ): Promise<void> {
    const from = this.#members.length;
    const open = async (n: number) => {
      const agents = Array.from({ length: agentsEach }, (_, k) => `agent://load.crowd-${n}-${k}`);
      const client = await WebSocketClient.open(ports[n % ports.length] as number, dialect.path);
      await dialect.register(client, agents);
      const read = dialect.reader((text) => client.send(text, dialect.opcode));
      client.onPayloads((payloads) => {
        payloads.forEach(read);
        this.#answers += payloads.length;
      });
      this.#members.push({ client, agents });
    };
    for (let n = from; n < from + connections; n += AT_ONCE) {
      const size = Math.min(AT_ONCE, from + connections - n);
      await Promise.all(Array.from({ length: size }, (_, k) => open(n + k)));
    }
  }

  /** Every agent in turn sends a heartbeat, so many a second in all. Returns what was answered meanwhile. */
  async beat(
    dialect: AgentRelayDialect,
    { perSecond, warmUpMs, measureMs, pids }: Beat,
  ): Promise<Span & { readonly answered: number }> {
    const beating = this.#beatFor(dialect, perSecond, warmUpMs + measureMs);
    await delay(warmUpMs);
    const before = { ...instant(pids), answers: this.#answers };
    await delay(measureMs);
    const span = { ...spanOf(before, instant(pids)), answered: this.#answers - before.answers };
    await beating;
    return span;
  }

  async #beatFor(dialect: AgentRelayDialect, perSecond: number, forMs: number): Promise<void> {
    // Neighbours in time are on different connections, as they are in life.
    const agentsEach = this.#members[0]?.agents.length ?? 0;
    const startedAt = performance.now();
    let sent = 0;
    while (performance.now() - startedAt < forMs) {
      for (const due = ((performance.now() - startedAt) / 1000) * perSecond; sent < due; sent += 1) {
        const { client, agents } = this.#members[sent % this.#members.length] as Member;
        const agent = agents[Math.floor(sent / this.#members.length) % agentsEach] as string;
        client.send(dialect.heartbeat(agent), dialect.opcode);
      }
      await delay(TICK_MS);
    }
  }
}

export interface Beat {
  readonly perSecond: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly pids: Pids;
}

/** POSTs over connections that stay open, one request under way on each. */
export interface Posts {
  readonly port: number;
  readonly path: string;
  readonly body: string;
  /** Sent in turn, each at most `usesPerKey` times. */
  readonly apiKeys: readonly string[];
  readonly usesPerKey: number;
  readonly connections: number;
  readonly warmUpMs: number;
  readonly measureMs: number;
  readonly pids: Pids;
}

/** Posts as fast as the answers come. @throws Error at any answer but 202. */
async function post(posts: Posts): Promise<Span & { readonly accepted: number }> {
  let accepted = 0;
  let sent = 0;
  let running = true;
  const next = (socket: Socket) => {
    const apiKey = posts.apiKeys[Math.floor(sent / posts.usesPerKey)];
    if (apiKey === undefined) throw new Error("The API keys are used up.");
    sent += 1;
    socket.write(requestText(posts, apiKey));
  };
  /** A server takes so many requests on one connection, and says when it was the last. */
  const drive = async () => {
    const socket = await openTo(posts.port);
    readAnswers(socket, (isLast) => {
      accepted += 1;
      if (isLast || !running) socket.destroy();
      if (isLast && running) void drive();
      else if (running) next(socket);
    });
    next(socket);
  };
  await Promise.all(Array.from({ length: posts.connections }, drive));
  await delay(posts.warmUpMs);
  const before = { ...instant(posts.pids), accepted };
  await delay(posts.measureMs);
  const span = { ...spanOf(before, instant(posts.pids)), accepted: accepted - before.accepted };
  running = false;
  while (accepted < sent) await delay(1);
  return span;
}

function requestText({ port, path, body }: Posts, apiKey: string): string {
  return (
    `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nContent-Type: application/json\r\nX-Api-Key: ${apiKey}\r\n` +
    `Content-Length: ${body.length}\r\n\r\n${body}`
  );
}

async function openTo(port: number): Promise<Socket> {
  const socket = connect(port, "127.0.0.1").setNoDelay(true);
  await once(socket, "connect");
  return socket;
}

function readAnswers(socket: Socket, answered: (isLast: boolean) => void): void {
  let data = "";
  socket.on("data", (chunk: Buffer) => {
    data += chunk.toString("latin1");
    const bodyAt = data.indexOf("\r\n\r\n") + 4;
    if (bodyAt < 4) return;
    const length = Number(/content-length: (\d+)/i.exec(data)?.[1] ?? Number.NaN);
    if (Number.isNaN(length)) throw new Error(`An answer without length: ${data}`);
    if (data.length < bodyAt + length) return;
    if (!data.startsWith("HTTP/1.1 202")) throw new Error(`Not accepted: ${data}`);
    const isLast = /connection: close/i.test(data.slice(0, bodyAt));
    data = "";
    answered(isLast);
  });
}

const pairs = new Pairs();
const crowd = new Crowd();
let dialect: Dialect = BARE;

takeOrders(carryOut);
