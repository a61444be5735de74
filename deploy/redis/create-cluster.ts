import { lookup } from "node:dns/promises";
import { isClusterUrl, nodeUrlsOf } from "runtime/redis-url.ts";
import { CONFIGURATION_EXIT_CODE, SettingsError, settingsReader } from "runtime/settings.ts";
import { type ClusterMember, forgetLost, formCluster, joinAsReplica, untilAll } from "../local/cluster-forming.ts";
import { askRedis } from "../local/redis-words.ts";

/**
 * Makes one cluster of the Redis servers that REDIS_URL names, an even number of them: primaries, and then a replica of each.
 * Run again, it takes those that came back empty in as replicas, where a primary has the fewest. Exit codes: 0 done, 1 not
 * done, 78 invalid settings. Source: docs/operations.md#running-a-redis-cluster.
 */

const DEFAULT_PORT = 6379;
const LEAST = 6;

const readSettings = settingsReader("REDIS_URL");

try {
  const { redisUrl } = readSettings(process.env);
  const members = await membersOf(redisUrl);
  process.stdout.write(`cluster ${await make(members)}\n`);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = error instanceof SettingsError ? CONFIGURATION_EXIT_CODE : 1;
}

async function make(members: readonly ClusterMember[]): Promise<string> {
  const areNew = await Promise.all(members.map(knowsNobody));
  const strays = members.filter((_, n) => areNew[n]);
  const known = members.filter((_, n) => !areNew[n]);
  const [any] = known;
  if (any === undefined) {
    await formCluster(members);
    return `made of ${members.length} nodes`;
  }
  await forgetLost(known);
  for (const stray of strays) await joinAsReplica(stray, await primaryWithFewestReplicas(any), any);
  return strays.length === 0 ? "is whole" : `has ${strays.length} nodes again, as replicas`;
}

async function knowsNobody(member: ClusterMember): Promise<boolean> {
  return /^cluster_known_nodes:1\r$/m.test(await member.ask("CLUSTER INFO"));
}

/** Its name. */
async function primaryWithFewestReplicas(member: ClusterMember): Promise<string> {
  const seen = await member.ask("CLUSTER NODES");
  const primaries = [...seen.matchAll(/^([0-9a-f]{40}) \S+ \S*\bmaster (?:\S+ ){5}\S*\d/gm)].map(
    ([, id]) => id as string,
  );
  const replicas = (id: string) => seen.split(` ${id} `).length;
  const [fewest] = primaries.toSorted((one, other) => replicas(one) - replicas(other));
  if (fewest === undefined) throw new Error("No node has slots: start all nodes anew, empty.");
  return fewest;
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
  const { hostname, port: given, username, password } = new URL(url);
  const port = Number(given || DEFAULT_PORT);
  const login = [`AUTH ${username} ${JSON.stringify(decodeURIComponent(password))}`];
  // CLUSTER MEET takes no host names.
  const { address } = await lookup(hostname, { family: 4 });
  const ask = (...commands: readonly string[]) => askRedis({ host: address, port }, login, commands);
  await untilAll(`answer (${hostname})`, [ask], () => ask("PING").then(Boolean, () => false));
  const [, busPort] = /@(\d+)\S* \S*\bmyself\b/.exec(await ask("CLUSTER NODES")) ?? [];
  return { meeting: `${address} ${port} ${busPort}`, ask };
}
