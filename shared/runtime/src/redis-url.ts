/** REDIS_URL: which Redis, or which Redis Cluster. Source: docs/redis.md#a-redis-cluster. */

const CLUSTER = /^(rediss?)-cluster:\/\/([^@/]*@)?([^@/]+)$/;

/** Whether it names a Redis Cluster: some of its nodes, which tell of the others. */
export function isClusterUrl(url: string): boolean {
  return /^rediss?-cluster:/.test(url);
}

/**
 * The nodes that a cluster's URL names, each as the URL of one Redis with the same scheme and user; null where it names none.
 * Pure.
 */
export function nodeUrlsOf(clusterUrl: string): string[] | null {
  const [, scheme, user = "", hosts] = CLUSTER.exec(clusterUrl) ?? [];
  return hosts?.split(",").map((host) => `${scheme}://${user}${host}`) ?? null;
}

/** Whether it is one that services can use. Pure. */
export function isRedisUrl(url: string): boolean {
  if (!isClusterUrl(url)) return isUrlOfOne(url);
  const nodes = nodeUrlsOf(url);
  return nodes?.every((node) => isUrlOfOne(node) && !node.endsWith("/")) ?? false;
}

function isUrlOfOne(text: string): boolean {
  const url = URL.parse(text);
  if (url === null || url.search !== "" || url.hash !== "") return false;
  if (url.protocol === "unix:") return url.hostname === "" && url.pathname.length > 1;
  const isRedis = (url.protocol === "redis:" || url.protocol === "rediss:") && url.hostname !== "";
  return isRedis && /^\/?[0-9]{0,4}$/.test(url.pathname) && isDecodable(url.username) && isDecodable(url.password);
}

function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}
