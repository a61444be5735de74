import { join } from "node:path";
import { Cluster } from "ioredis";
import { DeployedUsers } from "./deployed-users.ts";
import { TestCluster } from "./redis-cluster.ts";
import type { RedisUser } from "./test-redis.ts";

const ADMIN = "test-admin";
/** As whom a replica follows its primary. */
const REPLICA = "replica";

/** A Redis Cluster with the deployed users on each node, started by the deployed script. */
export class GuardedCluster extends TestCluster {
  readonly #users: DeployedUsers;

  constructor() {
    const users = new DeployedUsers({
      [ADMIN]: "~* &* +@all",
      [REPLICA]: "resetchannels -@all +psync +replconf +ping",
    });
    let files: Promise<string> | undefined;
    const command = async (folder: string, settings: readonly string[]) => {
      files ??= users.copyFiles();
      return ["/usr/bin/env", `TMPDIR=${folder}`, "/bin/sh", join(await files, "start.sh"), ...settings];
    };
    super({
      runner: {
        command,
        settings: { masteruser: REPLICA, masterauth: users.passwordOf(REPLICA) },
        env: { PATH: process.env.PATH, ...users.environment },
        // Inline commands take a quoted word as JSON has it.
        login: [`AUTH ${ADMIN} ${JSON.stringify(users.passwordOf(ADMIN))}`],
      },
    });
    this.#users = users;
  }

  get passwords(): string[] {
    return this.#users.passwords;
  }

  /** A client that may do everything. */
  adminClient(): Cluster {
    const nodes = this.nodes.map(({ port }) => ({ host: "127.0.0.1", port }));
    const redisOptions = { username: ADMIN, password: this.#users.passwordOf(ADMIN) };
    return new Cluster(nodes, { redisOptions: { ...redisOptions, replyMapping: "legacy" } });
  }

  /** `REDIS_URL` of one user. */
  urlFor(user: RedisUser): string {
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
