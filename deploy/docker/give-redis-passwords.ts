import { giveRedisPasswords } from "./redis-passwords.ts";

/**
 * Runs once in compose, as root, before Redis: passwords of the Redis users lie in a volume that lasts, made at the first
 * start. Arguments: the user's name and the number of the group that may read its password, as `gateway=2001`. REDIS_NODES
 * names the nodes of a Redis Cluster, as `redis:6379,redis-2:6379`; unset, it is one Redis.
 */
const FOLDER = "/run/redis-users";
/** User of the Redis container. */
const REDIS = { uid: 999, gid: 999 };

const groups = process.argv.slice(2).map((argument) => argument.split("=") as [string, string]);
const owners = new Map(groups.map(([user, gid]) => [user, { uid: 0, gid: Number(gid) }]));
const nodes = process.env.REDIS_NODES;
await giveRedisPasswords(FOLDER, REDIS, owners, nodes ? `redis-cluster://${nodes}` : "redis://redis:6379");
