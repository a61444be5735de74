import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { createServer } from "node:net";
import { promisify } from "node:util";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "@jest/globals";
import { SURFACES } from "relay-protocol/contract/surfaces.ts";
import { SettingsError } from "relay-runtime/settings.ts";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import type { EmbeddedCluster } from "../../deploy/local/embedded-cluster.ts";
import { type Provisions, provide } from "../../deploy/local/provisions.ts";
import { LocalRelay, type Relay, type RelayOverrides, startRelay } from "../../deploy/local/relay.ts";
import { sayTo } from "../../deploy/redis/redis-words.ts";
import { AgentSocket, ed25519Key, signed, tryUpgrade } from "../support/agent.ts";
import { freePort } from "../support/free-port.ts";
import { HttpClient, scrape } from "../support/http.ts";
import { registerWith } from "../support/issuer.ts";
import { TestRedis } from "../support/test-redis.ts";
import { until, watchLeaks } from "../support/until.ts";

const http = new HttpClient();
const noLeaks = watchLeaks();
const relays: Relay[] = [];
afterEach(async () => {
  await Promise.all(relays.splice(0).map((relay) => relay.stop()));
});
afterAll(() => noLeaks());

async function start(overrides?: RelayOverrides): Promise<Relay> {
  const relay = await startRelay(overrides);
  relays.push(relay);
  return relay;
}

const message = { from: "agent://alice", to: "agent://bob", message: "hi" };
const keyOf = ({ agents }: Relay) => ({ "x-api-key": agents?.api_key as string });

describe("A relay that is told nothing", () => {
  test("serves when it has started, at the address that it names, for agents whose keys it made", async () => {
    const relay = await start();
    const { alice, bob } = relay.agents as NonNullable<Relay["agents"]>;
    expect(relay.url).toBe(`http://127.0.0.1:${relay.port}`);
    expect((await http.get(`${relay.url}/ready`)).status).toBe(200);
    expect((await http.get(relay.url + SURFACES.relayManifest.path)).body.base_url).toBe(relay.url);

    const [one, two] = [await AgentSocket.open(relay.websocketUrl), await AgentSocket.open(relay.websocketUrl)];
    const aliceKey = ed25519Key(alice.key_id, alice.private_key);
    const host = new URL(relay.url).host;
    await one.ask(registerWith({ id: "agent://alice", key: aliceKey, credential: alice.credential as string }, host));
    const bobKey = ed25519Key(bob.key_id, bob.private_key);
    await two.ask(registerWith({ id: "agent://bob", key: bobKey, credential: bob.credential as string }, host));
    const envelope = signed(aliceKey, { type: "message.send", from: "agent://alice", to: "agent://bob" });
    expect(await one.ask(envelope)).toMatchObject({ target_delivery: { can_deliver_realtime: true } });
    await two.delivered(envelope.id);
    expect((await http.post(`${relay.url}/v1/messages/send`, message, keyOf(relay))).status).toBe(202);
    expect((await http.get(`${relay.url}/api/ops/traffic-daily`)).body.totals.published_envelopes).toBe(2);
    await Promise.all([one.close(), two.close()]);
  });

  test("shows connections beside the agents that are online, with the advice when nobody is", async () => {
    const relay = await start();
    const ready = async () => (await http.get(`${relay.url}/ready`)).body;
    const diagnostics = async () => (await http.get(`${relay.url}/api/diagnostics`)).body;
    const advice = { none: (await ready()).next_action, diagnosed: (await diagnostics()).next_action };
    expect(await ready()).toMatchObject({ connections: 0, online_agents: 0 });

    const silent = await AgentSocket.open(relay.websocketUrl);
    const counted = { connections: 1, online_agents: 0 };
    await until("the pod has told it", async () => (await ready()).connections === 1);
    expect(await ready()).toMatchObject(counted);
    await until("diagnostics show it", async () => (await diagnostics()).presence.connections === 1);
    expect((await diagnostics()).presence).toMatchObject(counted);
    expect((await ready()).next_action).not.toBe(advice.none);
    expect((await diagnostics()).next_action).not.toBe(advice.diagnosed);
    await silent.close();
  });

  test("shares nothing with another one", async () => {
    const [one, other] = await Promise.all([start(), start()]);
    expect(one.port).not.toBe(other.port);
    expect((await http.post(`${other.url}/v1/messages/send`, message, keyOf(one))).status).toBe(401);
  });

  test("may be stopped again and again", async () => {
    const relay = await start();
    await Promise.all([relay.stop(), relay.stop()]);
    await expect(fetch(`${relay.url}/health`)).rejects.toThrow();
    await relay.stop();
  });
});

describe("A relay that is told", () => {
  const redis = new TestRedis();
  beforeAll(() => redis.start());
  afterAll(() => redis.stop());

  test("a Redis and keys uses them, and leaves them when it stops", async () => {
    const keys = (await start()).agents;
    const relay = await start({ environment: { REDIS_URL: redis.url } });
    expect(relay.agents).not.toEqual(keys);
    await relay.stop();
    expect(existsSync(redis.path)).toBe(true);
  });

  test("its address names that one", async () => {
    const relay = await start({
      environment: { RELAY_BASE_URL: "https://relay.example", RELAY_WS_URL: "wss://relay.example" },
    });
    expect([relay.url, relay.websocketUrl]).toEqual(["https://relay.example", "wss://relay.example/ws"]);
    expect((await fetch(`http://127.0.0.1:${relay.port}/ready`)).status).toBe(200);
  });

  test("its websocket paths ask for an upgrade", async () => {
    const relay = await start({ environment: { RELAY_ALTERNATE_WS_PATH: "/agents/live" } });
    for (const path of ["/ws", "/agents/live?agent=alice"]) {
      const plain = await fetch(`http://127.0.0.1:${relay.port}${path}`);
      expect([plain.status, plain.headers.get("upgrade")]).toEqual([426, "websocket"]);
    }
    expect((await fetch(`http://127.0.0.1:${relay.port}/relay`)).status).toBe(404);
  });

  test("one service runs that alone", async () => {
    const relay = await start({ services: ["gateway"] });
    const { url } = relay;
    const ready = await http.get(`${url}/ready`);
    expect(ready.status).toBe(200);
    expect((await http.get(`${url}/api/ops/traffic-daily`)).status).toBe(404);
    expect((await tryUpgrade(relay, "/ws")).status).toBe(404);
  });
});

describe("A relay on a Redis Cluster of its own", () => {
  let provisions: Provisions;
  let relay: LocalRelay;
  beforeAll(async () => {
    const environment = { PORT: "0", LOG_LEVEL: "silent", METRICS_PORT: String(await freePort()) };
    provisions = await provide(environment, { cluster: true });
    relay = new LocalRelay(provisions, { cluster: true });
    await relay.start();
  });
  afterAll(() => relay.stop());

  test("has two pods, which take connections in turn and have metrics of their own", async () => {
    const sockets = await Promise.all([1, 2, 3, 4].map(() => AgentSocket.open(relay.websocketUrl)));
    const metrics = await scrape(`http://127.0.0.1:${provisions.environment.METRICS_PORT}/metrics`);
    const connections = ["1", "2"].map((pod) => metrics.value("relay_connections", { pod, service: "ws-connector" }));
    expect(connections).toEqual([2, 2]);
    const told = async () => (await http.get(`${relay.url}/ready`)).body.connections;
    await until("both pods have told what they have", async () => (await told()) === 4);
    await Promise.all(sockets.map((socket) => socket.close()));
  });

  test("lets nobody in who has no password, and shows it to nobody", async () => {
    const [{ port }] = (provisions.cluster as EmbeddedCluster).nodes as [ClusterNode];
    expect(await sayTo({ host: "127.0.0.1", port }, "DBSIZE")).toMatch(/^-NOAUTH/);
    const { password } = new URL((provisions.environment.REDIS_URL as string).split(",")[0] as string);
    const { stdout } = await promisify(execFile)("ps", ["-eo", "args=", "-ww"]);
    expect([password.length >= 32, stdout.includes(password)]).toEqual([true, false]);
  });
});

describe("A relay that cannot start", () => {
  test("because of a setting says which, and leaves nothing behind", async () => {
    const refused = start({
      environment: { RELAY_PARTITIONS: "none", RELAY_CONTACT: "foo", RELAY_MAX_CONNECTIONS: "x" },
    });
    const error: unknown = await refused.catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(SettingsError);
    const names = (error as SettingsError).problems.map((problem) => problem.split(" ")[0]);
    expect(names.sort()).toEqual(["RELAY_CONTACT", "RELAY_MAX_CONNECTIONS", "RELAY_PARTITIONS"]);
  });

  test("because its port is taken says so, and leaves nothing behind", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => taken.once("listening", resolve));
    const { port } = taken.address() as { port: number };
    await expect(start({ environment: { PORT: String(port) } })).rejects.toMatchObject({ code: "EADDRINUSE" });
    await new Promise((resolve) => taken.close(resolve));
  });

  test("because its keys file cannot be read says so, and leaves nothing behind", async () => {
    await expect(start({ environment: { RELAY_KEYS_FILE: "/nowhere/keys.json" } })).rejects.toThrow();
  });
});
