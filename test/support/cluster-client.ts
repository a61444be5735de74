import { Cluster } from "ioredis";
import { nodeUrlsOf } from "runtime/redis-url.ts";

/** A client of a Redis Cluster. @param url `redis-cluster://…`, with the user whose rights it has. */
export function clusterClient(url: string): Cluster {
  const nodes = (nodeUrlsOf(url) as string[]).map((node) => new URL(node));
  const [{ username, password }] = nodes as [URL];
  const user = username === "" ? {} : { username, password: decodeURIComponent(password) };
  return new Cluster(
    nodes.map(({ hostname: host, port }) => ({ host, port: Number(port) })),
    { redisOptions: { ...user, replyMapping: "legacy" } },
  );
}
