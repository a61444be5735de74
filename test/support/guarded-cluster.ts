import { join } from "node:path";
import { CLUSTER_USERS, DeployedUsers, REDIS_USERS } from "./deployed-users.ts";
import { TestCluster } from "./redis-cluster.ts";
import type { RedisUser } from "./test-redis.ts";

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
