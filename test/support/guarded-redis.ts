import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { appendFile, copyFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "./free-port.ts";
import { TestRelay } from "./relay.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import { type RedisUser, TestRedis } from "./test-redis.ts";
import { until } from "./until.ts";

const DEPLOYED = new URL("../../deploy/redis/", import.meta.url);
export const REDIS_USERS = ["gateway", "ws-connector", "ops-reporting", "window-reset"] as const satisfies RedisUser[];
/** The one user that is not deployed: it sees what the others did, and does what befalls a Redis. */
const ADMIN = "test-admin";

/** Name of the variable that start.sh takes a user's password from. */
export function passwordVariable(user: string): string {
  return `REDIS_PASSWORD_${user.toUpperCase().replaceAll("-", "_")}`;
}

/** Redis as it is deployed, started by its own script on a TCP port, with one user a service and one more for tests. */
export class GuardedRedis extends TestRedis {
  /** What start.sh and Redis said. */
  output = "";
  readonly #passwords = new Map([...REDIS_USERS, ADMIN].map((user) => [user as string, awkwardPassword()]));
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;
  #port = 0;
  #child: ChildProcess | undefined;

  override get url(): string {
    return `redis://127.0.0.1:${this.#port}`;
  }

  override get adminAddress(): string {
    return this.#urlOf(ADMIN);
  }

  get passwords(): string[] {
    return [...this.#passwords.values()];
  }

  override urlFor(user: RedisUser): string {
    return this.#urlOf(user);
  }

  override async start(): Promise<void> {
    this.#port ||= await freePort();
    const path = await this.#copyFiles();
    const passwords = [...this.#passwords].map(([user, password]) => [passwordVariable(user), password]);
    const script = join(path, "start.sh");
    const child = spawn("/bin/sh", [script, "--port", `${this.#port}`, "--bind", "127.0.0.1"], {
      env: { PATH: process.env.PATH, TMPDIR: path, ...Object.fromEntries(passwords) },
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
    await this.#folder?.[Symbol.asyncDispose]();
  }

  override async pid(): Promise<number> {
    return this.#child?.pid as number;
  }

  #urlOf(user: string): string {
    const password = encodeURIComponent(this.#passwords.get(user) as string);
    return this.url.replace("://", `://${user}:${password}@`);
  }

  /** The deployed files side by side, as a container has them. */
  async #copyFiles(): Promise<string> {
    this.#folder = await temporaryFolder();
    const { path } = this.#folder;
    for (const file of ["redis.conf", "users.acl", "start.sh"])
      await copyFile(new URL(file, DEPLOYED), join(path, file));
    await appendFile(join(path, "users.acl"), `user ${ADMIN} on #${passwordVariable(ADMIN)} ~* &* +@all\n`);
    return path;
  }
}

/** A relay whose services reach Redis each as its own user. */
export class GuardedRelay extends TestRelay {
  override readonly redis = new GuardedRedis();
}

/** Holds what a shell, an ACL file or a URL could stumble over. */
function awkwardPassword(): string {
  return `${randomBytes(9).toString("base64url")} $HOME'"\\%@:/#`;
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
