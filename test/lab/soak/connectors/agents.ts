import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { Connector, RelayError } from "../../../../connector/src/index.ts";
import type { AgentOrders, Orders, Told } from "./crowd.ts";

/** Agents on the connector for TypeScript, by the protocol of `crowd.ts`. They tell what happens, and keep nothing. */

const input = createInterface(process.stdin)[Symbol.asyncIterator]();
const orders: Orders = JSON.parse((await input.next()).value as string);
const talking = new AbortController();
const connectors = orders.agents.map(connectorOf);
await Promise.all(connectors.map((connector) => connector.start()));
for (const [n, { partners }] of orders.agents.entries()) void talk(connectors[n] as Connector, partners);
await input.next();
talking.abort();
await input.next();
await Promise.all(connectors.map((connector) => connector.close()));

function connectorOf({ url, agent, key }: AgentOrders): Connector {
  const { key_id: keyId, alg, private_key: privateKey, secret } = key;
  const connector = new Connector({ url, agent, key: { keyId, alg, privateKey, secret } as never, takeOver: true });
  connector.on("state", ({ status }) => {
    if (status === "online") tell({ told: "online", agent, at: monotonicMs() });
  });
  connector.on("delivery", ({ payload }) => {
    tell({ told: "delivered", id: String(payload.message), agent, at: monotonicMs() });
  });
  connector.on("error", ({ code }) => tell({ told: "problem", code }));
  return connector;
}

async function talk(connector: Connector, partners: readonly string[]): Promise<void> {
  await delay(Math.random() * orders.send_every_ms);
  for (let n = 0; !talking.signal.aborted; n += 1) {
    void send(connector, partners[n % partners.length] as string, orders.first_number + n);
    await delay(orders.send_every_ms);
  }
}

async function send(connector: Connector, to: string, number: number): Promise<void> {
  const id = `${connector.agent} ${to} ${number}`;
  tell({ told: "sent", id, at: monotonicMs() });
  try {
    const { delivery, duplicate } = await connector.send(to, { message: id }, { timeoutMs: orders.send_timeout_ms });
    tell({ told: "accepted", id, at: monotonicMs(), duplicate, realtime: delivery.canDeliverRealtime });
  } catch (error) {
    if (!(error instanceof RelayError)) throw error;
    tell({ told: "failed", id, at: monotonicMs(), code: error.code, outcome: error.outcome });
  }
}

function tell(told: Told): void {
  process.stdout.write(`${JSON.stringify(told)}\n`);
}

function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}
