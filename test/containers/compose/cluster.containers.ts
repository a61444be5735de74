import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { AgentSocket, ed25519Key, signed } from "../../support/agent.ts";
import { HttpClient } from "../../support/http.ts";
import { until } from "../../support/until.ts";
import { ComposeStack, inside, logOf } from "./stack.ts";

const FAILOVER_MS = 30_000;
const PACE_MS = 300;
const stack = new ComposeStack({}, { cluster: true });
const http = new HttpClient();
let bob: AgentSocket;
let apiKey: string;

beforeAll(async () => {
  await stack.clone();
  await stack.deploy();
  const agents = await stack.developmentAgents();
  apiKey = agents.api_key;
  bob = await AgentSocket.open(stack.websocketUrl);
  const key = ed25519Key(agents.bob.key_id, agents.bob.private_key);
  await bob.ask(signed(key, { type: "agent.register", from: agents.bob.agent_id }));
}, 400_000);
afterAll(async () => {
  await bob?.close();
  await stack.stop();
}, 60_000);

/** Whether a message is handed to bob. Asked again and again, within the rate of the key. */
async function isHandedOver(): Promise<boolean> {
  await delay(PACE_MS);
  const message = { from: "agent://alice", to: "agent://bob", message: "hi" };
  const { body } = await http.post(`${stack.url}/v1/messages/send`, message, { "x-api-key": apiKey });
  return body.target_delivery?.can_deliver_realtime === true;
}

test("the relay of docker-compose.cluster.yml delivers, over nodes that have the names of their services", async () => {
  await until("a message is handed over", isHandedOver);
  const env = await inside(await stack.container("gateway"), "cat /run/redis-users/*.env 2>/dev/null || true");
  expect(env).toMatch(/^REDIS_URL=redis-cluster:\/\/gateway:[0-9a-f]{64}@redis:6379,redis-2:6379,\S+\n$/);
});

test("it goes on when a node has died, and takes it in again", async () => {
  const node = await stack.container("redis");
  await node.kill();
  await until("messages are handed over again", isHandedOver, FAILOVER_MS);
  await node.start();
  await stack.deploy();
  expect(await logOf(await stack.container("redis-cluster"))).toContain("1 node is in the cluster again");
  expect((await http.get(`${stack.url}/ready`)).status).toBe(200);
}, 240_000);
