import { type AgentKey, ed25519Key, hmacKey } from "../../../support/agent.ts";
import { BINARY, TEXT } from "../../frames.ts";
import type { WebSocketClient } from "./websocket.ts";

/** What the load generator is told about how to talk to a system; travels between processes. */
export type Speech =
  | { readonly dialect: "bare" | "bare-acks" | "socket.io" | "nats" }
  | {
      readonly dialect: "agent-relay";
      readonly alg: "hmac-sha256" | "ed25519";
      readonly keyId: string;
      /** base64url. */
      readonly secret: string;
    };

/** How clients of one system talk. */
export interface Dialect {
  /** Of the websocket. */
  readonly path: string;
  readonly opcode: number;
  /** True when the very same message may be sent again. */
  readonly repeatable: boolean;
  /** Makes agents known on a connection that has just opened; resolves when the server says that they are. */
  register(client: WebSocketClient, agents: readonly string[]): Promise<void>;
  /** The next message. */
  message(from: string, to: string): string;
  /** Where an agent must say every 15 s that it is there, what it says. */
  readonly heartbeat?: (agent: string) => string;
  /**
   * Reads what comes in on one connection: how many deliveries a payload holds. Throws on a refusal.
   * @param answer sends what the server is waiting for.
   */
  reader(answer: (text: string) => void): (payload: Buffer) => number;
}

/** 100 bytes of JSON. */
export const PAYLOAD = { message: "x".repeat(86) } as const;

/** Frames are told apart by one byte: that of the word after `{"frame":"`. */
const KIND_AT = '{"frame":"'.length;
const DELIVER = "d".charCodeAt(0);
const ACK = "a".charCodeAt(0);
/** An ack that promises no delivery ends in `false}}`; no other has this letter there. */
const NOT_REALTIME_AT = "false}}".length;
const NOT_REALTIME = "f".charCodeAt(0);

export interface AgentRelayDialect extends Dialect {
  readonly heartbeat: (agent: string) => string;
}

/** The relay's own clients: every envelope has an id and a time of its own, and is signed. */
export function agentRelay(speech: Extract<Speech, { dialect: "agent-relay" }>): AgentRelayDialect {
  const { alg, keyId, secret } = speech;
  const key = alg === "ed25519" ? ed25519Key(keyId, secret) : hmacKey(keyId, secret);
  const run = Date.now().toString(36);
  const payload = JSON.stringify(PAYLOAD);
  let serial = 0;
  const envelope = (type: string, from: string, more: string) => {
    serial += 1;
    const head = `{"id":"${run}-${process.pid}-${serial}","type":"${type}","from":"${from}"`;
    return signed(key, `${head}${more},"ts":${Date.now()},"key_id":"${key.keyId}"}`);
  };

  return {
    path: "/ws",
    opcode: TEXT,
    repeatable: false,
    async register(client, agents) {
      await expectFrame(client, '{"frame":"hello"');
      for (const agent of agents) client.send(envelope("agent.register", agent, ',"payload":{}'), TEXT);
      for (const _ of agents) await expectFrame(client, '{"frame":"ack"');
    },
    message: (from, to) => envelope("message.send", from, `,"to":"${to}","payload":${payload}`),
    heartbeat: (agent) => envelope("agent.heartbeat", agent, ',"payload":{}'),
    reader: () => (payload) => {
      if (payload[KIND_AT] === DELIVER) return 1;
      const isGood = payload[KIND_AT] === ACK && payload[payload.length - NOT_REALTIME_AT] !== NOT_REALTIME;
      if (!isGood) throw new Error(`Not the ack of a delivery: ${payload}`);
      return 0;
    },
  };
}

function signed(key: AgentKey, canonical: string): string {
  return `${canonical.slice(0, -1)},"sig":"${key.sign(canonical)}"}`;
}

async function expectFrame(client: WebSocketClient, head: string): Promise<void> {
  const frame = await client.next();
  if (!frame.startsWith(head)) throw new Error(`Expected ${head}, got ${frame}`);
}

/** A message as the peers carry it. */
function content(from: string, to: string) {
  return { id: "message-1", from, to, payload: PAYLOAD };
}

/** peers/bare-relay.ts: `{"register": [agents]}` is echoed, whatever else comes in is a delivery. */
export const BARE: Dialect = {
  path: "/",
  opcode: TEXT,
  repeatable: true,
  async register(client, agents) {
    client.send(JSON.stringify({ register: agents }), TEXT);
    await expectText(client, '{"registered"');
  },
  message: (from, to) => JSON.stringify(content(from, to)),
  reader: () => () => 1,
};

/** The same with `ACKS`. A message begins with `{"id"`, an ack with `{"ack"`. */
export const BARE_ACKS: Dialect = {
  ...BARE,
  reader: () => (message) => (message[2] === ACK ? 0 : 1),
};

/** peers/socket-io.ts. Packets of Engine.IO 4 (one digit) and Socket.IO 5 (the next). */
export const SOCKET_IO: Dialect = {
  path: "/socket.io/?EIO=4&transport=websocket",
  opcode: TEXT,
  repeatable: true,
  async register(client, agents) {
    await expectText(client, "0{");
    client.send("40", TEXT);
    await expectText(client, "40{");
    client.send(`420${JSON.stringify(["register", agents])}`, TEXT);
    await expectText(client, "430");
  },
  message: (from, to) => `42${JSON.stringify(["send", to, content(from, to)])}`,
  reader: (answer) => (packet) => {
    if (packet.length > 1) return 1;
    if (packet.toString() === "2") answer("3");
    return 0;
  },
};

/** nats-server: its text protocol in binary frames; an agent is a subject. */
export const NATS: Dialect = {
  path: "/",
  opcode: BINARY,
  repeatable: true,
  async register(client, agents) {
    await expectText(client, "INFO ");
    const subscriptions = agents.map((agent, n) => `SUB ${subjectOf(agent)} ${n + 1}\r\n`);
    client.send(`CONNECT {"verbose":false,"pedantic":false}\r\n${subscriptions.join("")}PING\r\n`, BINARY);
    let said = "";
    while (!said.includes("PONG\r\n")) said += await client.next();
  },
  message(from, to) {
    const text = JSON.stringify(content(from, to));
    return `PUB ${subjectOf(to)} ${text.length}\r\n${text}\r\n`;
  },
  reader: (answer) => natsReader(answer),
};

function subjectOf(agent: string): string {
  return agent.replace("agent://", "agent.");
}

/** Commands are lines; a MSG is followed by as many bytes as it says, and a frame may end anywhere. */
function natsReader(answer: (text: string) => void): (payload: Buffer) => number {
  let rest = Buffer.alloc(0);
  return (payload) => {
    const data = rest.length === 0 ? payload : Buffer.concat([rest, payload]);
    let deliveries = 0;
    let at = 0;
    for (let end = data.indexOf("\r\n", at); end !== -1; end = data.indexOf("\r\n", at)) {
      let next = end + 2;
      if (data[at] === MSG) {
        next += Number(data.toString("latin1", data.lastIndexOf(" ", end) + 1, end)) + 2;
        if (next > data.length) break;
        deliveries += 1;
      } else if (data.toString("latin1", at, end) === "PING") {
        answer("PONG\r\n");
      }
      at = next;
    }
    rest = Buffer.from(data.subarray(at));
    return deliveries;
  };
}

const MSG = "M".charCodeAt(0);

async function expectText(client: WebSocketClient, head: string): Promise<void> {
  const text = await client.next();
  if (!text.startsWith(head)) throw new Error(`Expected ${head}, got ${text}`);
}
