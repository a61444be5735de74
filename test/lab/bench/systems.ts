import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { makeApiKey, makeEd25519Key, makeHmacKey } from "../../../deploy/keys/make.ts";
import { onPath } from "../../../deploy/local/programs.mjs";
import { GuardedClusterRelay } from "../../cluster/support/guarded-cluster-relay.ts";
import { freePort } from "../../support/free-port.ts";
import { GuardedRelay } from "../../support/guarded-redis.ts";
import { PodProcess } from "../../support/pod-process.ts";
import { TestRelay } from "../../support/relay.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { TestRedis } from "../../support/test-redis.ts";
import { until } from "../../support/until.ts";
import type { Pids } from "../accounting.ts";
import type { EarlierTree } from "../earlier-tree.ts";
import type { Speech } from "./load/dialects.ts";

/** A system under test: two server processes and whatever they need, until it is disposed of. */
export interface SystemUnderTest extends AsyncDisposable {
  readonly speech: Speech;
  /** What the senders connect to, in turn, and last what the targets do. */
  readonly ports: readonly number[];
  /** Of every process whose CPU counts. */
  readonly pids: Pids;
}

export const SENDING = "sending pod";
export const RECEIVING = "receiving pod";
export const REDIS = "redis";

export type SystemName = "agent-relay" | "agent-relay-gathering" | PeerName | "nats";
/** Peers that are programs of ours, over a Redis. */
type PeerName = "bare" | "bare-acks" | "socket.io" | "socket.io-sharded";

/** Titles, in the order of the tables. */
export const SYSTEM_TITLES: Readonly<Record<SystemName, string>> = {
  "agent-relay": "Agent Relay",
  "agent-relay-gathering": "Agent Relay, `RELAY_GATHER_MS=1`",
  bare: "bare ws + ioredis",
  "bare-acks": "the same with acks",
  "socket.io": "Socket.IO, classic adapter",
  "socket.io-sharded": "Socket.IO, sharded adapter",
  nats: "NATS",
};

/** Ours of an earlier commit. */
export const BEFORE = "agent-relay-before";
/** What is measured side by side. */
export type Contender = SystemName | typeof BEFORE;

/** Arguments of Node for each of the two servers. */
export type NodeArguments = (role: string) => readonly string[];

const AGENTS = ["agent://load.*"];
/** What a benchmark must lift: the load of one connection, and that all come from one address. */
const SETTINGS = {
  LOG_LEVEL: "info",
  RELAY_AGENTS_PER_KEY: "0",
  RELAY_ENVELOPES_PER_SECOND: "0",
  RELAY_BYTES_PER_SECOND: "0",
  RELAY_CONNECTIONS_PER_ADDRESS: "0",
  RELAY_UNREGISTERED_CONNECTIONS: "0",
};

export type SigningAlgorithm = Extract<Speech, { dialect: "agent-relay" }>["alg"];

export const SIGNINGS: readonly SigningAlgorithm[] = ["hmac-sha256", "ed25519"];

/** What the connectors share: a relay that is not started, and the Redis processes whose CPU counts. */
export interface Bus {
  readonly relay: TestRelay;
  readonly partitions: number;
  redisPids(): Promise<Pids>;
}

/** Two connectors of ours, over one Redis unless told otherwise; one key for all agents. @param own settings that are not as they come. */
export async function startAgentRelay(
  nodeArguments: NodeArguments,
  alg: SigningAlgorithm = "hmac-sha256",
  bus: Bus = oneRedis(new TestRelay()),
  own: Readonly<Record<string, string>> = {},
): Promise<SystemUnderTest> {
  const relay = await bus.relay.start();
  const settings = { ...SETTINGS, ...own, RELAY_PARTITIONS: String(bus.partitions) };
  const { record, secret } = makeKey(alg);
  await relay.writeKeys({ api_keys: [], signing_keys: [record] });
  const start = (role: string) => relay.startProcess("ws-connector", settings, nodeArguments(role));
  const sending = await start(SENDING);
  const receiving = await start(RECEIVING);
  return {
    speech: { dialect: "agent-relay", alg, keyId: record.key_id, secret },
    ports: [sending.port, receiving.port],
    pids: { [SENDING]: sending.pid, [RECEIVING]: receiving.pid, ...(await bus.redisPids()) },
    async [Symbol.asyncDispose]() {
      await Promise.all([sending, receiving].map((pod) => pod.end("SIGTERM")));
      await relay.stop();
    },
  };
}

function oneRedis(relay: TestRelay): Bus {
  return { relay, partitions: 1, redisPids: async () => ({ [REDIS]: await relay.redis.pid() }) };
}

/** A gateway and the API keys that it takes. */
interface GatewayUnderTest extends AsyncDisposable {
  readonly port: number;
  readonly path: string;
  readonly apiKeys: readonly string[];
  readonly pids: Pids;
}

export async function startGateway(nodeArguments: NodeArguments, apiKeyCount: number): Promise<GatewayUnderTest> {
  const relay = await new TestRelay().start();
  const keys = Array.from({ length: apiKeyCount }, (_, n) => makeApiKey({ id: `load-${n}`, agents: AGENTS }));
  await relay.writeKeys({ api_keys: keys.map(({ record }) => record), signing_keys: [] });
  const gateway = await relay.startProcess("gateway", { LOG_LEVEL: "info" }, nodeArguments("gateway"));
  return {
    port: gateway.port,
    path: "/v1/messages/send",
    apiKeys: keys.map(({ apiKey }) => apiKey),
    pids: { gateway: gateway.pid, [REDIS]: await relay.redis.pid() },
    async [Symbol.asyncDispose]() {
      await gateway.end("SIGTERM");
      await relay.stop();
    },
  };
}

function makeKey(alg: SigningAlgorithm) {
  const terms = { id: "load", agents: AGENTS };
  if (alg === "hmac-sha256") return makeHmacKey(terms);
  const { record, privateKey } = makeEd25519Key(terms);
  return { record, secret: privateKey };
}

/** A relay whose services are those of another tree; Redis, keys and settings are as this one's have them. */
class EarlierRelay extends TestRelay {
  readonly #folder: string;

  constructor(folder: string) {
    super();
    this.#folder = folder;
  }

  protected override programOf(service: ServiceName): string {
    return join(this.#folder, super.programOf(service));
  }
}

/** One Redis and a Redis Cluster, both as they are deployed, over TCP. */

export const PRIMARIES = ["primary 1", "primary 2", "primary 3"] as const;

export function deployedRedis(): Bus {
  return oneRedis(new GuardedRelay());
}

/** Three primaries with a replica each: what they send to it is their own cost, what it does with that is not counted. */
export function redisCluster(partitions: number): Bus {
  return onCluster(new GuardedClusterRelay(), partitions);
}

/** Three primaries alone: replicas take cores that a load on two of them has not to spare. */
export function unreplicatedCluster(partitions: number): Bus {
  return onCluster(new UnreplicatedRelay(), partitions);
}

class UnreplicatedRelay extends GuardedClusterRelay {
  override async start(): Promise<this> {
    await super.start();
    const { cluster } = this;
    const replicas = cluster.nodes.slice(PRIMARIES.length);
    await Promise.all(replicas.map((node) => cluster.kill(node)));
    await Promise.all(replicas.map((node) => cluster.untilGivenUp(node)));
    return this;
  }
}

function onCluster(relay: GuardedClusterRelay, partitions: number): Bus {
  const redisPids = async () => {
    const primaries = relay.cluster.nodes.slice(0, PRIMARIES.length);
    const pids = await Promise.all(primaries.map((node) => node.pid()));
    return Object.fromEntries(PRIMARIES.map((name, n) => [name, pids[n] as number]));
  };
  return { relay, partitions, redisPids };
}

const BARE = "test/lab/bench/peers/bare-relay.ts";
const SOCKET_IO = "test/lab/bench/peers/socket-io.ts";
const PEERS: Readonly<Record<PeerName, Peer>> = {
  bare: { program: BARE, settings: { ACKS: "no" }, dialect: "bare" },
  "bare-acks": { program: BARE, settings: { ACKS: "yes" }, dialect: "bare-acks" },
  "socket.io": { program: SOCKET_IO, settings: { ADAPTER: "classic" }, dialect: "socket.io" },
  "socket.io-sharded": { program: SOCKET_IO, settings: { ADAPTER: "sharded" }, dialect: "socket.io" },
};

interface Peer {
  readonly program: string;
  readonly settings: Record<string, string>;
  readonly dialect: Exclude<Speech["dialect"], "agent-relay">;
}

/** Two processes of one of the peers' programs, over a Redis of their own. */
async function startPeer(name: PeerName, nodeArguments: NodeArguments): Promise<SystemUnderTest> {
  const { program, settings, dialect } = PEERS[name];
  const redis = new TestRedis();
  await redis.start();
  const start = (role: string, pod: string, otherPod: string) => {
    const environment = { ...settings, REDIS_PATH: redis.path, POD: pod, OTHER_POD: otherPod };
    return PodProcess.start(program, environment, nodeArguments(role));
  };
  const sending = await start(SENDING, "pod-a", "pod-b");
  const receiving = await start(RECEIVING, "pod-b", "pod-a");
  return {
    speech: { dialect },
    ports: [sending.port, receiving.port],
    pids: { [SENDING]: sending.pid, [RECEIVING]: receiving.pid, [REDIS]: await redis.pid() },
    async [Symbol.asyncDispose]() {
      await Promise.all([sending.stop(), receiving.stop()]);
      await redis.stop();
    },
  };
}

/** It takes any key, or none. */
export async function startBareKoa(apiKeyCount: number): Promise<GatewayUnderTest> {
  const redis = new TestRedis();
  await redis.start();
  const server = await PodProcess.start("test/lab/bench/peers/bare-koa.ts", { REDIS_PATH: redis.path });
  return {
    port: server.port,
    path: "/",
    apiKeys: Array.from({ length: apiKeyCount }, (_, n) => `key-${n}`.padEnd(39, "x")),
    pids: { gateway: server.pid, [REDIS]: await redis.pid() },
    async [Symbol.asyncDispose]() {
      await server.stop();
      await redis.stop();
    },
  };
}

/** Path of the NATS server, where there is one. */
function natsProgram(): string | undefined {
  return onPath("nats-server");
}

/** Two NATS servers in a cluster, each with a websocket port. */
async function startNats(): Promise<SystemUnderTest> {
  const program = natsProgram();
  if (program === undefined) throw new Error("There is no nats-server on the PATH.");
  const folder = await temporaryFolder();
  const [clusterPorts, ports] = [await twoPorts(), await twoPorts()];
  const routes = clusterPorts.map((port) => `nats://127.0.0.1:${port}`);
  const start = async (n: 0 | 1) => {
    const config = join(folder.path, `nats-${n}.conf`);
    await writeFile(config, configText(ports[n], clusterPorts[n], routes));
    const child = spawn(program, ["-c", config], { stdio: "ignore" });
    await until("NATS takes connections", () => takesConnections(ports[n]));
    return child;
  };
  const [sending, receiving] = [await start(0), await start(1)];
  return {
    speech: { dialect: "nats" },
    ports,
    pids: { [SENDING]: sending.pid as number, [RECEIVING]: receiving.pid as number },
    async [Symbol.asyncDispose]() {
      await Promise.all([sending, receiving].map(end));
      await folder[Symbol.asyncDispose]();
    },
  };
}

function configText(port: number, clusterPort: number, routes: readonly string[]): string {
  return `
    host: "127.0.0.1", port: -1
    websocket { host: "127.0.0.1", port: ${port}, no_tls: true }
    cluster { name: "bench", host: "127.0.0.1", port: ${clusterPort}, routes: ${JSON.stringify(routes)} }
  `;
}

async function twoPorts(): Promise<[number, number]> {
  return [await freePort(), await freePort()];
}

async function takesConnections(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  const took = await once(socket, "connect").then(
    () => true,
    () => false,
  );
  socket.destroy();
  return took;
}

async function end(child: ChildProcess): Promise<void> {
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}

const NO_ARGUMENTS: NodeArguments = () => [];

/** @param nodeArguments for servers that run on Node. @param ours more of them, for our own alone. */
export function startSystem(
  name: SystemName,
  nodeArguments: NodeArguments = NO_ARGUMENTS,
  ours: NodeArguments = NO_ARGUMENTS,
): Promise<SystemUnderTest> {
  if (name === "nats") return startNats();
  if (name !== "agent-relay" && name !== "agent-relay-gathering") return startPeer(name, nodeArguments);
  const own = name === "agent-relay-gathering" ? { RELAY_GATHER_MS: "1" } : {};
  return startAgentRelay((role) => [...nodeArguments(role), ...ours(role)], undefined, undefined, own);
}

/** Profiles and the like are of this tree's servers alone. */
export function startContender(
  name: Contender,
  { ours, before }: { readonly ours: NodeArguments; readonly before: EarlierTree | undefined },
): Promise<SystemUnderTest> {
  if (name !== BEFORE) return startSystem(name, NO_ARGUMENTS, ours);
  if (before === undefined) throw new Error("There is no earlier tree to start.");
  return startAgentRelay(NO_ARGUMENTS, "hmac-sha256", oneRedis(new EarlierRelay(before.folder)));
}

/** Those of the named systems that this machine has. */
export function installed(names: readonly SystemName[]): SystemName[] {
  const known = Object.keys(SYSTEM_TITLES) as SystemName[];
  return known.filter((name) => names.includes(name) && (name !== "nats" || natsProgram() !== undefined));
}
