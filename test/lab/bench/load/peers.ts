import { BINARY, TEXT } from "../../frames.ts";
import { type Dialect, PAYLOAD } from "./dialects.ts";
import type { WebSocketClient } from "./websocket.ts";

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

const ACK = "a".charCodeAt(0);

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
