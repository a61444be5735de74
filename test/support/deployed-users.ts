import { randomBytes } from "node:crypto";
import { appendFile, copyFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryFolder } from "./temporary-folder.ts";
import type { RedisUser } from "./test-redis.ts";

const DEPLOYED = new URL("../../deploy/redis/", import.meta.url);
export const REDIS_USERS = ["gateway", "ws-connector", "ops-reporting", "window-reset"] as const satisfies RedisUser[];

/** Name of the variable that start.sh takes a user's password from. */
export function passwordVariable(user: string): string {
  return `REDIS_PASSWORD_${user.toUpperCase().replaceAll("-", "_")}`;
}

/** Who else there is on a node of a Redis Cluster: cluster-users.acl. */
export const CLUSTER_USERS = ["replica", "cluster-create"] as const;
const FILES = ["redis.conf", "users.acl", "start.sh", "cluster.conf", "cluster-users.acl"];

/** The deployed users, each with a password, and others that only tests have. */
export class DeployedUsers {
  readonly #others: Readonly<Record<string, string>>;
  readonly #passwords: ReadonlyMap<string, string>;
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;

  /** @param deployed those of the files that are used. @param others rules of further users, by name. */
  constructor(deployed: readonly string[], others: Readonly<Record<string, string>>) {
    this.#others = others;
    this.#passwords = new Map([...deployed, ...Object.keys(others)].map((user) => [user, awkwardPassword()]));
  }

  passwordOf(user: string): string {
    return this.#passwords.get(user) as string;
  }

  get passwords(): string[] {
    return [...this.#passwords.values()];
  }

  /** What start.sh is given. */
  get environment(): Record<string, string> {
    return Object.fromEntries([...this.#passwords].map(([user, password]) => [passwordVariable(user), password]));
  }

  /** A URL of Redis with one of the users. */
  urlFor(user: string, url: string): string {
    return url.replace("://", `://${user}:${encodeURIComponent(this.passwordOf(user))}@`);
  }

  /** The deployed files side by side, as a container has them, in a folder that `remove` takes away. */
  async copyFiles(): Promise<string> {
    this.#folder = await temporaryFolder();
    const { path } = this.#folder;
    for (const file of FILES) await copyFile(new URL(file, DEPLOYED), join(path, file));
    for (const [user, rules] of Object.entries(this.#others))
      await appendFile(join(path, "users.acl"), `user ${user} on #${passwordVariable(user)} ${rules}\n`);
    return path;
  }

  async remove(): Promise<void> {
    await this.#folder?.[Symbol.asyncDispose]();
  }
}

/** Holds what a shell, an ACL file or a URL could stumble over. */
function awkwardPassword(): string {
  return `${randomBytes(9).toString("base64url")} $HOME'"\\%@:/#`;
}
