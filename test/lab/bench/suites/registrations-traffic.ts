import { generateKeyPairSync, sign } from "node:crypto";
import { type AgentKey, type Frame, signed } from "../../../support/agent.ts";
import { registerWith, TestIssuer } from "../../../support/issuer.ts";

/** What the agents of the registrations send, made before anything is measured. */

export const AGENTS = 10_000;
/** Agents that register once the pods have taken those, so that what is asked of them has been compiled. */
export const LATER_AGENTS = 10_000;
/** As many as a connection may carry: the question here is what a registration costs, not what a socket does. */
export const AGENTS_EACH = 100;
/** Of the relay, as its agents dial it. */
export const HOST = "relay.example";
const NOBODY = "agent://load.nobody";

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
export function listed(): Traffic {
  const made = Array.from({ length: AGENTS + LATER_AGENTS }, (_, n) => {
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
  const first = made.slice(0, AGENTS);
  return {
    keys: { signing_keys: made.map(({ record }) => record) },
    registers: byConnection(first.map(({ register }) => register)),
    messages: byConnection(first.map(({ message }) => message)),
    registersAgain: byConnection(first.map(({ again }) => again)),
    laterRegisters: byConnection(made.slice(AGENTS).map(({ register }) => register)),
  };
}

/** Of agents whose keys one issuer's credentials bring. */
export async function withCredentials(): Promise<Traffic> {
  const issuer = new TestIssuer("load");
  const agents = await Promise.all(Array.from({ length: AGENTS + LATER_AGENTS }, (_, n) => issuer.agent(agentOf(n))));
  const [first, others] = [agents.slice(0, AGENTS), agents.slice(AGENTS)];
  const registers = (those: typeof agents) => byConnection(those.map((agent) => registerWith(agent, HOST)));
  const messages = byConnection(first.map(({ key, id }) => messageOf(key, id)));
  const keys = { issuers: [issuer.record(["agent://load.*"])] };
  return {
    keys,
    registers: registers(first),
    messages,
    registersAgain: registers(first),
    laterRegisters: registers(others),
  };
}

function byConnection(envelopes: readonly Frame[]): Frame[][] {
  return Array.from({ length: envelopes.length / AGENTS_EACH }, (_, n) =>
    envelopes.slice(n * AGENTS_EACH, (n + 1) * AGENTS_EACH),
  );
}
