import { randomBytes } from "node:crypto";
import { appendFile, copyFile, readFile } from "node:fs/promises";
import { join } from "node:path";
import { controlKeys, partitionKeys } from "relay-window/redis/keys.ts";
import { WindowKeys } from "relay-window/redis/window-keys.ts";
import { TestCluster } from "./redis-cluster.ts";
import { temporaryFolder } from "./temporary-folder.ts";
import type { RedisUser } from "./test-redis.ts";

/** deploy/redis/users.acl, read as its own comments tell. */

export interface AclUser {
  readonly name: string;
  /** What the user may do; the call of scripts and other rules in parentheses stand in `selectors`. */
  readonly rules: AclRules;
  readonly selectors: readonly AclRules[];
}

export interface AclRules {
  readonly commands: readonly string[];
  readonly keys: readonly { readonly reads: boolean; readonly writes: boolean; readonly pattern: string }[];
  readonly channels: readonly string[];
}

export async function readUsersAcl(): Promise<AclUser[]> {
  const text = await readFile(new URL("../../deploy/redis/users.acl", import.meta.url), "utf8");
  const users = text
    .replace(/^#.*/gm, "")
    .split(/^user /m)
    .slice(1);
  return users.map((user) => {
    const [, name = "", rest = ""] = /^(\S+)(.*)$/s.exec(user) ?? [];
    const selectors = [...rest.matchAll(/\(([^)]*)\)/g)].map(([, inner = ""]) => rulesOf(inner));
    return { name, rules: rulesOf(rest.replace(/\([^)]*\)/g, "")), selectors };
  });
}

function rulesOf(text: string): AclRules {
  const words = text.split(/\s+/);
  return {
    commands: words.filter((word) => word.startsWith("+")).map((word) => word.slice(1)),
    channels: words.filter((word) => word.startsWith("&")).map((word) => word.slice(1)),
    keys: words.flatMap((word) => {
      const [, permission, pattern] = /^(%R|%W|)~(.*)$/.exec(word) ?? [];
      if (pattern === undefined) return [];
      return { reads: permission !== "%W", writes: permission !== "%R", pattern };
    }),
  };
}

/** What rules say of one key. */
export function accessTo(rules: AclRules, key: string): { readonly reads: boolean; readonly writes: boolean } {
  const matching = rules.keys.filter(({ pattern }) => matches(pattern, key));
  return { reads: matching.some(({ reads }) => reads), writes: matching.some(({ writes }) => writes) };
}

/** True when a pattern with stars fits the name. */
export function matches(pattern: string, name: string): boolean {
  const parts = pattern.split("*").map((part) => part.replace(/[^\w-]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`).test(name);
}

const SOME_PARTITION = 12;
/** What the name of a key ends with, where not every user has all of its kind. */
const REST: Readonly<Record<string, string>> = { limit: "address:target_reads:7" };

const SOME_KEYS = new WindowKeys(1, Array(SOME_PARTITION + 1).fill(2));
/** A key of each name that ends with its window. */
export const WINDOW_KEYS: readonly string[] = [SOME_KEYS.whole, SOME_KEYS.partition(SOME_PARTITION)]
  .flatMap((keys) => Object.values(keys))
  .map((key) => (typeof key === "function" ? key("7") : key));

/** One key of each kind that keys.ts makes, by kind: `relay:{0qx}:seen:7` is `seen`. */
export const KEY_OF_KIND: ReadonlyMap<string, string> = new Map(
  [
    ...Object.entries(partitionKeys)
      .filter(([name]) => !name.startsWith("podChannel"))
      .map(([name, make]) => (make as (p: number, rest: string) => string)(SOME_PARTITION, REST[name] ?? "7")),
    ...Object.values(controlKeys),
    ...WINDOW_KEYS,
  ].map((key) => [kindOf(key), key]),
);

function kindOf(key: string): string {
  return key.replace(/^relay:\{\w+\}:/, "").split(":")[0] as string;
}

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

const ADMIN = "test-admin";
/** Under which nodes name each other, as where they are deployed. */
const HOST = "localhost";

/** A Redis Cluster with the deployed users on each node, started by the deployed script. */
export class GuardedCluster extends TestCluster {
  readonly #users: DeployedUsers;

  /** @param others rules of further users, by name. */
  constructor(others: Readonly<Record<string, string>> = {}) {
    const users = new DeployedUsers([...REDIS_USERS, ...CLUSTER_USERS], { [ADMIN]: "~* &* +@all", ...others });
    let files: Promise<string> | undefined;
    const command = async (folder: string, settings: readonly string[]) => {
      files ??= users.copyFiles();
      return ["/usr/bin/env", `TMPDIR=${folder}`, "/bin/sh", join(await files, "start.sh"), ...settings];
    };
    super({
      runner: {
        command,
        settings: {},
        env: {
          PATH: process.env.PATH,
          REDIS_CLUSTER_HOSTNAME: HOST,
          REDIS_CLUSTER_START_WAIT: "0",
          ...users.environment,
        },
        // Inline commands take a quoted word as JSON has it.
        login: [`AUTH ${ADMIN} ${JSON.stringify(users.passwordOf(ADMIN))}`],
      },
    });
    this.#users = users;
  }

  get passwords(): string[] {
    return this.#users.passwords;
  }

  passwordOf(user: string): string {
    return this.#users.passwordOf(user);
  }

  /** With a user who may do everything. */
  override get adminUrl(): string {
    return this.#users.urlFor(ADMIN, this.url);
  }

  override urlFor(user: RedisUser): string {
    return this.#users.urlFor(user, this.url);
  }

  protected override get migrant(): string {
    return `AUTH2 ${ADMIN} ${JSON.stringify(this.#users.passwordOf(ADMIN))}`;
  }

  override async stop(): Promise<void> {
    await super.stop();
    await this.#users.remove();
  }
}
