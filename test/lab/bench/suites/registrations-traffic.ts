import { generateKeyPairSync, sign } from "node:crypto";
import { type AgentKey, type Frame, signed } from "../../../support/agent.ts";
import { registerWith, TestIssuer } from "../../../support/issuer.ts";

/** What the agents of the registrations send, made before anything is measured. */

/** Of the relay, as its agents dial it. */
export const HOST = "relay.example";
const NOBODY = "agent://load.nobody";

/** How many agents there are, and how they come. */
export interface Crowd {
  readonly agents: number;
  /** Agents that register once the pods have taken those, so that what is asked of them has been compiled. */
  readonly laterAgents: number;
  /** Agents on each connection. */
  readonly each: number;
}

/** Envelopes by connection. */
export interface Traffic {
  readonly keys: object;
  readonly registers: Frame[][];
  readonly messages: Frame[][];
  readonly registersAgain: Frame[][];
  readonly laterRegisters: Frame[][];
}

const agentOf = (n: number) => `agent://load.a${n}`;

const messageOf = (key: AgentKey, from: string) =>
  signed(key, { type: "message.send", from, to: NOBODY, payload: { text: "hello" } });

/** Of agents whose keys are listed. */
export function listed({ agents, laterAgents, each }: Crowd): Traffic {
  const made = Array.from({ length: agents + laterAgents }, (_, n) => {
    const { privateKey, publicKey } = generateKeyPairSync("ed25519");
    const record = {
      key_id: `k-${n}`,
      alg: "ed25519",
      public_key: publicKey.export({ format: "jwk" }).x,
      agents: [agentOf(n)],
    };
    const key: AgentKey = {
      keyId: record.key_id,
      sign: (text) => sign(null, Buffer.from(text), privateKey).toString("base64url"),
    };
    const register = () => signed(key, { type: "agent.register", from: agentOf(n) });
    return { record, register: register(), message: messageOf(key, agentOf(n)), again: register() };
  });
  const first = made.slice(0, agents);
  return {
    keys: { signing_keys: made.map(({ record }) => record) },
    registers: byConnection(
      first.map(({ register }) => register),
      each,
    ),
    messages: byConnection(
      first.map(({ message }) => message),
      each,
    ),
    registersAgain: byConnection(
      first.map(({ again }) => again),
      each,
    ),
    laterRegisters: byConnection(
      made.slice(agents).map(({ register }) => register),
      each,
    ),
  };
}

/** Of agents whose keys one issuer's credentials bring. */
export async function withCredentials({ agents, laterAgents, each }: Crowd): Promise<Traffic> {
  const issuer = new TestIssuer("load");
  const all = await Promise.all(Array.from({ length: agents + laterAgents }, (_, n) => issuer.agent(agentOf(n))));
  const [first, others] = [all.slice(0, agents), all.slice(agents)];
  const registers = (those: typeof all) =>
    byConnection(
      those.map((agent) => registerWith(agent, HOST)),
      each,
    );
  const messages = byConnection(
    first.map(({ key, id }) => messageOf(key, id)),
    each,
  );
  const keys = { issuers: [issuer.record(["agent://load.*"])] };
  return {
    keys,
    registers: registers(first),
    messages,
    registersAgain: registers(first),
    laterRegisters: registers(others),
  };
}

function byConnection(envelopes: readonly Frame[], each: number): Frame[][] {
  return Array.from({ length: envelopes.length / each }, (_, n) => envelopes.slice(n * each, (n + 1) * each));
}
