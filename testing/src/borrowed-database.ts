import { randomUUID } from "node:crypto";
import { createLogger } from "relay-runtime/logging.ts";
import { LINK_DOWN_ADVICE } from "relay-window/redis/link-state.ts";
import { RedisLink } from "relay-window/redis/redis-link.ts";

/** One logical database of a Redis that others use as well, for one relay. */
export interface BorrowedDatabase {
  /** For REDIS_URL. */
  readonly url: string;
  /** Leaves it as empty as it was. */
  giveBack(): Promise<void>;
}

/** Says that the relay's keys in the database are those of tests. */
const MARK = "agent-relay-testing";
/**
 * The token of the relay that uses the database. One that was killed, or suspended for long, leaves its database to others
 * when this expires.
 */
const LEASE = "agent-relay-testing:lease";
const LEASE_MS = 60_000;
const RENEW_MS = 15_000;
/** 1 when the lease is still that of the token, which has it for a whole term again. */
const RENEW = `
if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call("PEXPIRE", KEYS[1], ARGV[2])`;
const RELAY_KEYS = "relay:*";
const PAGE = 500;
/** As many as Redis has by default. */
const DATABASES = 16;

/**
 * Takes the first database, from the one that the URL names on, that is empty or was left behind by tests. One that holds
 * anything else is left as it is.
 * @throws {Error} when Redis cannot be used, or has no such database.
 */
export async function borrowDatabase(url: string): Promise<BorrowedDatabase> {
  for (const database of databasesFrom(url)) {
    const link = await linkTo(database);
    const token = randomUUID();
    if (await isClaimed(link, token).catch(afterStopping(link))) return borrowed(database, link, token);
    await link.stop();
  }
  throw new Error(
    "startRelay: no database of REDIS_URL, from the named one on, is empty; nothing was changed. " +
      "Name a Redis with an empty database, or stop the relays that use it.",
  );
}

/** The same server with each number, from the named one on; over a unix socket there is one. */
function databasesFrom(url: string): string[] {
  if (!URL.canParse(url) || url.startsWith("unix:")) return [url];
  const address = new URL(url);
  const first = Number(address.pathname.slice(1) || "0");
  return Array.from({ length: Math.max(DATABASES - first, 1) }, (_, index) => {
    address.pathname = `/${first + index}`;
    return address.href;
  });
}

async function linkTo(url: string): Promise<RedisLink> {
  const link = new RedisLink({ url, name: MARK, logger: createLogger({ service: MARK, level: "silent" }) });
  await link.start();
  const { downKind } = link;
  if (downKind === null) return link;
  await link.stop();
  throw new Error(`startRelay: REDIS_URL cannot be used (${downKind}). ${LINK_DOWN_ADVICE[downKind]}`);
}

/** False for a database of others. Of two that find it empty, one gets the lease. */
async function isClaimed(link: RedisLink, token: string): Promise<boolean> {
  const isOfTests = (await link.command("EXISTS", MARK)) === 1;
  if (!isOfTests && (await link.command("DBSIZE")) !== 0) return false;
  if ((await link.command("SET", LEASE, token, "NX", "PX", LEASE_MS)) !== "OK") return false;
  if (isOfTests) await deleteRelayKeys(link);
  await link.command("SET", MARK, "Tests use this database, and delete what the relay leaves in it.");
  return true;
}

function borrowed(url: string, link: RedisLink, token: string): BorrowedDatabase {
  const isRenewed = async () => (await link.command("EVAL", RENEW, 1, LEASE, token, LEASE_MS)) === 1;
  const renewal = setInterval(() => {
    // Fails while Redis is away, as a test may have it.
    isRenewed().catch(() => {});
  }, RENEW_MS);
  renewal.unref();
  const emptied = async () => {
    // Once the lease has ended the database may be another relay's.
    if (!(await isRenewed())) return;
    await deleteRelayKeys(link);
    await link.command("UNLINK", MARK, LEASE);
  };
  const giveBack = async () => {
    clearInterval(renewal);
    // Of a Redis that is away the next relay deletes what is left.
    await emptied().catch(() => {});
    await link.stop();
  };
  return { url, giveBack };
}

async function deleteRelayKeys(link: RedisLink): Promise<void> {
  let cursor = "0";
  do {
    const [next, keys] = (await link.command("SCAN", cursor, "MATCH", RELAY_KEYS, "COUNT", PAGE)) as [string, string[]];
    if (keys.length > 0) await link.command("UNLINK", ...keys);
    cursor = next;
  } while (cursor !== "0");
}

function afterStopping(link: RedisLink): (error: unknown) => Promise<never> {
  return async (error) => {
    await link.stop();
    throw error;
  };
}
