import { readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Redis } from "ioredis";
import { EmbeddedRedis } from "../../deploy/local/embedded-redis.ts";

/** Who has a user of its own in deploy/redis/users.acl. */
export type RedisUser = "gateway" | "ws-connector" | "ops-reporting" | "window-reset";

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
    process.kill(await this.pid(), "SIGSTOP");
  }

  async resume(): Promise<void> {
    process.kill(await this.pid(), "SIGCONT");
  }

  /** Redis dies without a goodbye. `start` brings it back, empty, on the same path. */
  async kill(): Promise<void> {
    process.kill(await this.pid(), "SIGKILL");
    await this.stop();
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
