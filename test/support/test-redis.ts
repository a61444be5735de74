import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { Cluster, Redis } from "ioredis";
import { nodeUrlsOf } from "relay-runtime/addresses.ts";
import { BoundedRedis } from "relay-window/redis/client.ts";
import { EmbeddedRedis } from "../../deploy/local/embedded-redis.ts";

/** Who has a user of its own in deploy/redis/users.acl. */
export type RedisUser = "gateway" | "ws-connector" | "ops-reporting" | "window-reset";

const { sendCommand: givingUp } = BoundedRedis.prototype;
const hanging = new Set<object>();
/** How pods in this process sent commands before the first server hung. */
let sendingBefore = givingUp;

/** Until it goes on, pods in this process give up calls, also in a file that has them wait for answers. */
export function beginHang(server: object): void {
  if (hanging.size === 0) sendingBefore = BoundedRedis.prototype.sendCommand;
  hanging.add(server);
  BoundedRedis.prototype.sendCommand = givingUp;
}

export function endHang(server: object): void {
  if (hanging.delete(server) && hanging.size === 0) BoundedRedis.prototype.sendCommand = sendingBefore;
}

/** The embedded Redis, with the faults that can befall one. */
export class TestRedis extends EmbeddedRedis {
  /** The socket's path, as ioredis takes it. */
  get path(): string {
    return this.url.slice("unix://".length);
  }

  /** Where someone who may do everything connects, as ioredis takes it. */
  get adminAddress(): string {
    return this.path;
  }

  /** A client that may do everything. */
  adminClient(): Redis {
    return new Redis(this.adminAddress, { replyMapping: "legacy" });
  }

  /** `REDIS_URL` of one user; this Redis tells none from another. */
  urlFor(_user: RedisUser): string {
    return this.url;
  }

  /** Redis hangs: connections stay open and nothing is answered, until `resume`. */
  async pause(): Promise<void> {
    beginHang(this);
    process.kill(await this.pid(), "SIGSTOP");
  }

  async resume(): Promise<void> {
    process.kill(await this.pid(), "SIGCONT");
    endHang(this);
  }

  /** Redis dies without a goodbye. `start` brings it back, empty, on the same path. */
  async kill(): Promise<void> {
    process.kill(await this.pid(), "SIGKILL");
    await this.stop();
    endHang(this);
  }

  /** Dies, and comes back empty on the same path. */
  async restart(): Promise<void> {
    await this.kill();
    await this.start();
  }

  /** Process id of the running Redis. */
  async pid(): Promise<number> {
    return Number(await readFile(join(dirname(this.path), "redis.pid"), "utf8"));
  }
}

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

/** Every key and every value of the database, whatever its type, as one text. @param pattern of the keys, if not all. */
export async function everythingIn(client: Redis, pattern = "*"): Promise<string> {
  const found: unknown[] = [];
  for (const key of (await client.keys(pattern)).sort()) found.push(key, await valueAt(client, key));
  return JSON.stringify(found);
}

/** Everything, again and again while `work` goes on. */
export async function everythingDuring(client: Redis, work: () => Promise<void>): Promise<string[]> {
  const seen: string[] = [];
  let isDone = false;
  const finished = work().finally(() => {
    isDone = true;
  });
  while (!isDone) seen.push(await everythingIn(client));
  await finished;
  return seen;
}

async function valueAt(client: Redis, key: string): Promise<unknown> {
  const type = await client.type(key);
  if (type === "hash") return await client.hgetall(key);
  if (type === "set") return await client.smembers(key);
  if (type === "zset") return await client.zrange(key, "0", "-1", "WITHSCORES");
  if (type === "list") return await client.lrange(key, 0, -1);
  if (type === "string") return (await client.getBuffer(key))?.toString("latin1");
  // It was deleted, or ran out, since its name was read.
  if (type === "none") return null;
  throw new Error(`No reader for a ${type}.`);
}

const FILLER = "filler";
/** So much that what connections take besides moves the share by less than a hundredth. */
const FILLER_BYTES = 2 ** 25;

/** Fills Redis to this share of its memory; above 1 it is over its limit, and refuses writes. */
export async function fillTo(client: Redis, share: number): Promise<void> {
  if ((await client.strlen(FILLER)) === 0) await client.setrange(FILLER, FILLER_BYTES, "x");
  await client.config("SET", "maxmemory", String(Math.round((await usedBytes(client)) / share)));
}

/** Makes room again, under the limit that there is. */
export async function emptyAgain(client: Redis): Promise<void> {
  await client.del(FILLER);
}

/** Redis has no limit any more. */
export async function unlimited(client: Redis): Promise<void> {
  await client.config("SET", "maxmemory", "0");
  await client.del(FILLER);
}

async function usedBytes(client: Redis): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await client.info("memory"))?.[1]);
}

/** A command as MONITOR shows it. */
export interface MonitoredCommand {
  readonly name: string;
  readonly args: readonly string[];
  /** True when a script ran it. */
  readonly inScript: boolean;
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", r: "\r", t: "\t", a: "\x07", b: "\b" };

/**
 * MONITOR over a socket of its own. ioredis's loses its place when the first command comes in one piece with the answer to
 * MONITOR, which it does where pods publish all the time.
 */
export class RedisMonitor {
  readonly #socket: Socket;
  readonly #lines: Interface;

  private constructor(socket: Socket, lines: Interface) {
    this.#socket = socket;
    this.#lines = lines;
  }

  /** @param client of the server to watch. */
  static async open({ options }: Redis, onCommand: (command: MonitoredCommand) => void): Promise<RedisMonitor> {
    const { path, host, port = 6379 } = options;
    const socket = path === undefined ? connect(port, host) : connect(path);
    await once(socket, "connect");
    const lines = createInterface({ input: socket });
    const answered = once(lines, "line");
    const credentials = [options.username, options.password].filter((word) => typeof word === "string");
    if (credentials.length > 0) socket.write(encode("AUTH", ...credentials));
    socket.write(encode("MONITOR"));
    const [answer] = await answered;
    if (answer !== "+OK") throw new Error(`Redis answered ${answer}`);
    lines.on("line", (line) => {
      const command = parseCommand(line);
      if (command !== null) onCommand(command);
    });
    return new RedisMonitor(socket, lines);
  }

  /** Resolves once it has shown every command that the server ran before. @param client of the same server. */
  async caughtUp(client: Redis): Promise<void> {
    const mark = randomUUID();
    const shown = new Promise<void>((resolve) => {
      this.#lines.on("line", (line) => line.includes(mark) && resolve());
    });
    await client.echo(mark);
    await shown;
  }

  close(): void {
    this.#socket.destroy();
  }
}

function encode(...words: readonly string[]): string {
  const parts = words.map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
  return `*${words.length}\r\n${parts.join("")}`;
}

/** Reads `+<time> [<database> <source>] "<name>" "<argument>" …`; null for any other line. */
function parseCommand(line: string): MonitoredCommand | null {
  const [, source, rest] = line.match(/^\+[\d.]+ \[\d+ (\S+)\] (.*)$/) ?? [];
  if (source === undefined || rest === undefined) return null;
  const [name = "", ...args] = [...rest.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text = ""]) => unescapeText(text));
  return { name: name.toLowerCase(), args, inScript: source === "lua" };
}

/** Bytes beyond ASCII stand there as hexadecimal digits, one by one. */
function unescapeText(text: string): string {
  const bytes = text.replace(/\\(?:x([0-9a-f]{2})|(.))/g, (_, hex: string | undefined, character: string) =>
    hex === undefined ? (ESCAPES[character] ?? character) : String.fromCharCode(Number.parseInt(hex, 16)),
  );
  return Buffer.from(bytes, "latin1").toString();
}
