import { SURFACES, WEBSOCKET_PATH } from "relay-protocol/contract/surfaces.ts";

// The rules by which the settings' texts are addresses, and what they name: URLs, hosts, the relay's own names, REDIS_URL.

export function isPlainUrl(value: string, protocols: readonly string[]): boolean {
  const url = URL.parse(value);
  // The scheme of other settings is made from its letters.
  if (url === null || !protocols.includes(url.protocol) || !value.startsWith(url.protocol)) return false;
  // A password may contain a slash: then the @ after it is in what looks like the path.
  return !/[@?#]|\/$/.test(value);
}

/** A host as `URL.host` spells it, so that equal hosts are equal texts. Only a default port may be added. */
export function isHost(text: string): boolean {
  const host = URL.parse(`wss://${text}`)?.host;
  return /^[a-z0-9.:[\]-]+$/.test(text) && (text === host || text === `${host}:443`);
}

/**
 * The contact is written into lines of text and into JSON, so it has only characters of a URI. Source: RFC 3986,
 * section 2.
 */
export function isContact(value: string): boolean {
  if (!/^(?:https:\/\/|mailto:)[A-Za-z0-9._~:/?#[\]@!$&()*+,;=%-]{1,200}$/.test(value)) return false;
  const url = URL.parse(value);
  if (url?.protocol === "mailto:") return /^[^@/]+@[^@/]+$/.test(url.pathname);
  return url !== null && url.hostname !== "" && url.username === "" && url.password === "";
}

export function isOriginOrAny(value: string): boolean {
  return value === "any" || URL.parse(value)?.origin === value;
}

/** The exporter adds the path of traces itself. */
export function isCollector(url: string): boolean {
  return isPlainUrl(url.replace(/\/$/, ""), ["http:", "https:"]) && !/\/v1\/traces\/?$/.test(url);
}

export function isFreePath(path: string): boolean {
  if (!/^(?:\/[A-Za-z0-9_-]+)+$/.test(path) || path === WEBSOCKET_PATH) return false;
  return !Object.values(SURFACES).some((surface) =>
    [surface.path, ...surface.aliases].some((taken) => taken === path || path.startsWith(`${taken.split("/{")[0]}/`)),
  );
}

/** REDIS_URL of a Redis Cluster. Source: docs/redis.md#a-redis-cluster. */
const CLUSTER = /^(rediss?)-cluster:\/\/([^@/]*@)?([^@/]+)$/;

/** Whether it names a Redis Cluster: some of its nodes, which tell of the others. */
export function isClusterUrl(url: string): boolean {
  return /^rediss?-cluster:/.test(url);
}

/** The nodes in a cluster's URL, each as the URL of one Redis with the same scheme and user; null if there is none. */
export function nodeUrlsOf(clusterUrl: string): string[] | null {
  const [, scheme, user = "", hosts] = CLUSTER.exec(clusterUrl) ?? [];
  return hosts?.split(",").map((host) => `${scheme}://${user}${host}`) ?? null;
}

/** Whether services can use this REDIS_URL. */
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

/** Names of this machine: where clients reach the relay under one, they reach it under all. */
const LOOPBACK = ["127.0.0.1", "localhost", "[::1]"];

/**
 * The hosts of this relay, without default ports. A register with a credential says which of them it is meant for. They
 * are never taken from a request, in which anybody can write anything. Names of this machine belong to any relay, so
 * they count only if the operator gave no other name, or listed them. Source: docs/protocol.md#credentials.
 */
export function relayHosts({ baseUrl, wsUrl, publicHosts = [] }: RelayAddresses): ReadonlySet<string> {
  const addresses = [baseUrl, wsUrl].map((url) => new URL(url));
  const named = [
    ...addresses.filter(({ hostname }) => !LOOPBACK.includes(hostname)),
    ...publicHosts.map((host) => new URL(`wss://${host}`)),
  ];
  return new Set(named.length > 0 ? named.map(({ host }) => host) : addresses.flatMap(namesOfMachine));
}

/** The host that documents show for `payload.relay`: that of the websocket's address, if it counts. */
export function relayName(addresses: RelayAddresses): string {
  const hosts = relayHosts(addresses);
  const { host } = new URL(addresses.wsUrl);
  const [first = host] = hosts;
  return hosts.has(host) ? host : first;
}

/** As the settings say them. */
interface RelayAddresses {
  readonly baseUrl: string;
  readonly wsUrl: string;
  readonly publicHosts?: readonly string[] | undefined;
}

function namesOfMachine({ port }: URL): string[] {
  return LOOPBACK.map((name) => (port === "" ? name : `${name}:${port}`));
}
