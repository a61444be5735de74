import { type AgentKey, ed25519Key, hmacKey } from "../../../support/agent.ts";
import { TEXT } from "../../frames.ts";
import { type Dialect, PAYLOAD, type Speech } from "./dialects.ts";
import type { WebSocketClient } from "./websocket.ts";

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
