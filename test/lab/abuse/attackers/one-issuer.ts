import { createPrivateKey, createPublicKey, type JsonWebKey } from "node:crypto";
import { signed } from "../../../support/agent.ts";
import { type CredentialAgent, registerWith, TestIssuer } from "../../../support/issuer.ts";
import { ISSUER, RELAY_HOST } from "../support/names.ts";
import type { Target } from "../target.ts";
import { some } from "./agents.ts";
import { pour, strands } from "./onslaught.ts";
import { frameOf } from "./wire.ts";

/** Very many agents of one issuer, each with a key and a credential of its own. */

const CONNECTIONS = 4;
const AGENTS_EACH = 40;
/** More than a requester opens in a minute. */
const REQUESTS_OF_AN_AGENT = 64;

/** All register again and again, send messages, and ask ever new targets for sessions. */
export async function agentsOfAnIssuer(target: Target) {
  const privateKey = createPrivateKey({ key: target.issuerKey as JsonWebKey, format: "jwk" });
  const issuer = new TestIssuer(ISSUER, { privateKey, publicKey: createPublicKey(privateKey) });
  const agents = await Promise.all(some(CONNECTIONS * AGENTS_EACH, (n) => issuer.agent(`agent://${ISSUER}.a${n}`)));
  const floods = some(CONNECTIONS, (n) => floodOf(agents.slice(n * AGENTS_EACH, (n + 1) * AGENTS_EACH)));
  return strands(target, CONNECTIONS, async (on, n) => {
    const wire = await on.open(target.connectors[n % 2] as number, on.address(n));
    if (wire !== undefined) await pour(on, wire, floods[n] as Buffer[]);
  });
}

function floodOf(agents: readonly CredentialAgent[]): Buffer[] {
  const registers = agents.map((agent) => registerWith(agent, RELAY_HOST));
  const requests = agents.flatMap(({ id: from, key }) =>
    some(REQUESTS_OF_AN_AGENT, (n) => {
      const to = `${from}.wants-${n}`;
      return signed(key, { type: "session.request", from, to, payload: { purpose: "flood", ttl_minutes: 5 } });
    }),
  );
  const messages = agents.map(({ id: from, key }) =>
    signed(key, { type: "message.send", from, to: `agent://${ISSUER}.sink`, payload: {} }),
  );
  return [...registers, ...requests, ...messages].map((envelope) => frameOf(JSON.stringify(envelope)));
}
