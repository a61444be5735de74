import { join } from "node:path";
import type { ServiceName } from "relay-protocol/contract/surface.ts";
import { makeApiKey, makeEd25519Key, makeHmacKey } from "../../../../deploy/keys/make.ts";
import { GuardedClusterRelay } from "../../../cluster/support/guarded-cluster-relay.ts";
import { GuardedRelay } from "../../../support/guarded-redis.ts";
import { TestRelay } from "../../../support/relay.ts";
import type { Pids } from "../../accounting.ts";
import type { Speech } from "../load/dialects.ts";
import { type NodeArguments, RECEIVING, REDIS, SENDING, type SystemUnderTest } from "./system.ts";

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

export function oneRedis(relay: TestRelay): Bus {
  return { relay, partitions: 1, redisPids: async () => ({ [REDIS]: await relay.redis.pid() }) };
}

/** A gateway and the API keys that it takes. */
export interface GatewayUnderTest extends AsyncDisposable {
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
export class EarlierRelay extends TestRelay {
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
