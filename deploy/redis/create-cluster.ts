import { lookup } from "node:dns/promises";
import { isClusterUrl, nodeUrlsOf } from "relay-runtime/addresses.ts";
import { CONFIGURATION_EXIT_CODE, SettingsError, settingsReader } from "relay-runtime/settings.ts";
import type { Io } from "../local/io.ts";
import { type ClusterMember, formCluster, untilAll } from "./cluster-forming.ts";
import { mendCluster } from "./mend-cluster.ts";
import { askRedis } from "./redis-words.ts";

const DEFAULT_PORT = 6379;
const LEAST = 6;

const readSettings = settingsReader("REDIS_URL");

/**
 * Makes one cluster of the Redis servers that REDIS_URL names, an even number of them: primaries, and then a replica of each.
 * Run again, it takes in the nodes that came back empty. They become primaries of slots that nobody has any more, else replicas
 * of the primaries that have the fewest. Every node has to answer. Never rejects.
 * Source: docs/operations.md#running-a-redis-cluster.
 * @returns 0: all slots have an owner. 1: not all have one, or nothing was done. 78: invalid settings.
 */
export async function run({ env, stdout, stderr }: Omit<Io, "stdin">): Promise<number> {
  try {
    const members = await membersOf(readSettings(env).redisUrl);
    stdout.write(`${await make(members)}\n`);
    return 0;
  } catch (error) {
    stderr.write(`${(error as Error).message}\n`);
    return error instanceof SettingsError ? CONFIGURATION_EXIT_CODE : 1;
  }
}

async function make(members: readonly ClusterMember[]): Promise<string> {
  const areNew = await Promise.all(members.map(knowsNobody));
  const empty = members.filter((_, n) => areNew[n]);
  const [first, ...others] = members.filter((_, n) => !areNew[n]);
  if (first !== undefined) return await mendCluster([first, ...others], empty);
  await formCluster(members);
  return `cluster made of ${members.length} nodes`;
}

async function knowsNobody(member: ClusterMember): Promise<boolean> {
  return /^cluster_known_nodes:1\r$/m.test(await member.ask("CLUSTER INFO"));
}

async function membersOf(clusterUrl: string): Promise<ClusterMember[]> {
  const urls = (isClusterUrl(clusterUrl) && nodeUrlsOf(clusterUrl)) || [];
  if (urls.length < LEAST || urls.length % 2 !== 0) {
    throw new SettingsError([
      "REDIS_URL must name six nodes or more, an even number: redis-cluster://user:password@host,…",
    ]);
  }
  return await Promise.all(urls.map(memberAt));
}

async function memberAt(url: string): Promise<ClusterMember> {
  const { protocol, hostname, port: given, username, password } = new URL(url);
  const port = Number(given || DEFAULT_PORT);
  const login = [`AUTH ${username} ${JSON.stringify(decodeURIComponent(password))}`];
  // CLUSTER MEET takes no host names.
  const { address } = await lookup(hostname, { family: 4 }).catch((error: NodeJS.ErrnoException) => {
    throw new Error(`${hostname} of REDIS_URL has no IPv4 address (${error.code}).`);
  });
  const place = { host: address, port, ...(protocol === "rediss:" && { certifiedName: hostname }) };
  const ask = (...commands: readonly string[]) => askRedis(place, login, commands);
  let refusal = "";
  const answers = () =>
    ask("PING").then(Boolean, (error: Error) => {
      refusal = error.message;
      return false;
    });
  await untilAll(`answer (${hostname}:${port})`, [ask], answers).catch((error: Error) => {
    throw new Error(`${error.message} ${hostname}:${port} says: ${refusal}`);
  });
  const [, busPort] = /@(\d+)\S* \S*\bmyself\b/.exec(await ask("CLUSTER NODES")) ?? [];
  return { meeting: `${address} ${port} ${busPort}`, ask };
}

if (import.meta.main) process.exitCode = await run(process);
