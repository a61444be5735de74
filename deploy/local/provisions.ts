import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "relay-runtime/settings.ts";
import type { DevelopmentAgents } from "./dev-agents.ts";
import { developmentKeys, developmentKeysFile } from "./dev-keys.ts";
import { EmbeddedCluster } from "./embedded-cluster.ts";
import { EmbeddedRedis } from "./embedded-redis.ts";
import { FolderUse } from "./folder-use.ts";
import { privateNodes } from "./private-nodes.ts";

/** What services need from outside. */
export interface Provisions {
  /** Names a Redis and a keys file. */
  readonly environment: Environment;
  /** Development agents with their secrets; undefined when the keys file was given. */
  readonly agents: DevelopmentAgents | undefined;
  /** The Redis Cluster that was made here. */
  readonly cluster: EmbeddedCluster | undefined;
  /** Ends what was made here, and leaves alone what was given. */
  stop(): Promise<void>;
}

interface Provision {
  readonly environment: Environment;
  readonly agents?: DevelopmentAgents;
  readonly cluster?: EmbeddedCluster;
  stop(): Promise<void>;
}

/** Whoever has the development issuer's key can speak for its agents: it lies beside a relay only where no other machine reaches it. */
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|::1)$/;
const DEFAULT_HOST = "127.0.0.1";
/** Lie evenly on three primaries. Source: docs/operations.md#a-redis-cluster. */
const CLUSTER_PARTITIONS = "12";

const GIVEN: Provision = { environment: {}, stop: async () => {} };

/**
 * Adds to an environment what it does not name: REDIS_URL, a private Redis or Redis Cluster; RELAY_KEYS_FILE, development
 * keys; RELAY_PARTITIONS, as many as a cluster needs.
 * @param options.keysFolder keeps the keys; without one they are in a temporary folder, and end with the rest.
 * @throws {Error} when there is no suitable Redis on the PATH, or when it does not start.
 */
export async function provide(
  environment: Environment,
  { keysFolder, cluster = false }: { readonly keysFolder?: string; readonly cluster?: boolean } = {},
): Promise<Provisions> {
  const keys = environment.RELAY_KEYS_FILE ? GIVEN : await makeKeys(environment, keysFolder);
  const start = cluster ? startCluster : startRedis;
  const redis = environment.REDIS_URL ? GIVEN : await start().catch(afterStopping(keys));
  const partitions = cluster && !environment.RELAY_PARTITIONS ? { RELAY_PARTITIONS: CLUSTER_PARTITIONS } : {};
  return {
    environment: { ...environment, ...partitions, ...keys.environment, ...redis.environment },
    agents: keys.agents,
    cluster: redis.cluster,
    stop: async () => {
      await redis.stop();
      await keys.stop();
    },
  };
}

async function startRedis(): Promise<Provision> {
  const redis = new EmbeddedRedis();
  await redis.start();
  return { environment: { REDIS_URL: redis.url }, stop: () => redis.stop() };
}

async function startCluster(): Promise<Provision> {
  const cluster = new EmbeddedCluster({ runner: privateNodes() });
  await cluster.start();
  return { environment: { REDIS_URL: cluster.url }, cluster, stop: () => cluster.stop() };
}

async function makeKeys({ HOST }: Environment, keysFolder: string | undefined): Promise<Provision> {
  const folder = keysFolder ?? (await mkdtemp(join(tmpdir(), "agent-relay-keys-")));
  const isIssued = LOOPBACK.test(HOST || DEFAULT_HOST);
  const use = isIssued ? new FolderUse(folder) : undefined;
  await use?.start();
  const keys: Provision = {
    environment: { RELAY_KEYS_FILE: developmentKeysFile(folder) },
    stop: async () => {
      await use?.stop();
      if (keysFolder === undefined) await rm(folder, { recursive: true, force: true });
    },
  };
  const agents = await developmentKeys(folder, isIssued ? "issued" : "listed").catch(afterStopping(keys));
  return { ...keys, agents };
}

function afterStopping(provision: Provision): (error: unknown) => Promise<never> {
  return async (error) => {
    await provision.stop();
    throw error;
  };
}
