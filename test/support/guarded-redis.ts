import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { DeployedUsers, REDIS_USERS } from "./deployed-users.ts";
import { freePort } from "./free-port.ts";
import { TestRelay } from "./relay.ts";
import { type RedisUser, TestRedis } from "./test-redis.ts";
import { until } from "./until.ts";

/** The one user that is not deployed: it sees what the others did, and does what befalls a Redis. */
const ADMIN = "test-admin";

/** Redis as it is deployed, started by its own script on a TCP port, with one user a service and one more for tests. */
export class GuardedRedis extends TestRedis {
  /** What start.sh and Redis said. */
  output = "";
  readonly #users = new DeployedUsers(REDIS_USERS, { [ADMIN]: "~* &* +@all" });
  #port = 0;
  #child: ChildProcess | undefined;

  override get url(): string {
    return `redis://127.0.0.1:${this.#port}`;
  }

  override get adminAddress(): string {
    return this.#users.urlFor(ADMIN, this.url);
  }

  get passwords(): string[] {
    return this.#users.passwords;
  }

  override urlFor(user: RedisUser): string {
    return this.#users.urlFor(user, this.url);
  }

  override async start(): Promise<void> {
    this.#port ||= await freePort();
    const path = await this.#users.copyFiles();
    const script = join(path, "start.sh");
    const child = spawn("/bin/sh", [script, "--port", `${this.#port}`, "--bind", "127.0.0.1"], {
      env: { PATH: process.env.PATH, TMPDIR: path, ...this.#users.environment },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#child = child;
    this.output = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.on("data", (chunk) => {
        this.output += chunk;
      });
    }
    await until("Redis takes connections", () => /Ready to accept/.test(this.output) || hasEnded(child));
    if (hasEnded(child)) throw new Error(`Redis did not start. It said:\n${this.output}`);
  }

  override async stop(): Promise<void> {
    const child = this.#child;
    if (child !== undefined && !hasEnded(child)) {
      child.kill("SIGKILL");
      await once(child, "close");
    }
    await this.#users.remove();
  }

  override async pid(): Promise<number> {
    return this.#child?.pid as number;
  }
}

/** A relay whose services reach Redis each as its own user. */
export class GuardedRelay extends TestRelay {
  override readonly redis = new GuardedRedis();
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
