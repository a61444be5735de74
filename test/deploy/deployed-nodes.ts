import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll } from "@jest/globals";
import type { ClusterNode } from "../../deploy/local/cluster-node.ts";
import { EmbeddedCluster } from "../../deploy/local/embedded-cluster.ts";
import { run } from "../../deploy/redis/create-cluster.ts";
import { passwordVariable, REDIS_USERS } from "../support/deployed-users.ts";
import { until, watchLeaks } from "../support/until.ts";

const START = fileURLToPath(new URL("../../deploy/redis/start.sh", import.meta.url));
const HOST = "localhost";
/** The user that makes a cluster, and can do nothing else. */
export const CREATOR = "cluster-create";
export const REPLICA = "replica";
export const START_WAIT_S = 4;
/** Takes the place of `sleep` in start.sh: it ends at once, unless the test holds it. */
const SLEEP = `#!/bin/sh
echo "$1" >"$HOLDING.asked"
while [ -e "$HOLDING" ]; do /bin/sleep 0.02; done
`;

/** Holds what a shell, a configuration file or a URL could stumble over. */
export const passwordOf = (user: string) => `of ${user} "\\$HOME'%@:/#`;
const passwords = [...REDIS_USERS, CREATOR, REPLICA].map((user) => [passwordVariable(user), passwordOf(user)]);

interface Folder {
  path: string;
}

export type Six = [ClusterNode, ClusterNode, ClusterNode, ClusterNode, ClusterNode, ClusterNode];

/** Six nodes as they are deployed, of which somebody else makes a cluster. Tests ask them as the user that may make one. */
export class DeployedNodes extends EmbeddedCluster {
  all: readonly ClusterNode[] = [];
  /** Of programs that start.sh finds before others. */
  readonly #programs: Folder;

  constructor() {
    const programs: Folder = { path: "" };
    super({
      runner: {
        command: (folder, settings) => {
          const path = `${programs.path}:${process.env.PATH}`;
          const env = [`TMPDIR=${folder}`, `PATH=${path}`, `HOLDING=${join(programs.path, "held")}`];
          return ["/usr/bin/env", ...env, "/bin/sh", START, ...settings];
        },
        settings: {},
        env: {
          REDIS_CLUSTER_HOSTNAME: HOST,
          REDIS_CLUSTER_START_WAIT: `${START_WAIT_S}`,
          ...Object.fromEntries(passwords),
        },
        login: [`AUTH ${CREATOR} ${JSON.stringify(passwordOf(CREATOR))}`],
      },
      nodeTimeoutMs: 1000,
    });
    this.#programs = programs;
  }

  get six(): Six {
    return [...this.all] as Six;
  }

  override async start(): Promise<void> {
    this.#programs.path = await mkdtemp(join(tmpdir(), "agent-relay-programs-"));
    await writeFile(join(this.#programs.path, "sleep"), SLEEP, { mode: 0o755 });
    this.all = await this.makeNodes(6);
    await Promise.all(this.all.map((node) => node.start()));
  }

  override async stop(): Promise<void> {
    await Promise.all(this.all.map((node) => node.stop()));
    await rm(this.#programs.path, { recursive: true, force: true });
  }

  urlFor(user: string, nodes: readonly ClusterNode[] = this.all): string {
    const hosts = nodes.map(({ port }) => `${HOST}:${port}`).join(",");
    return `redis-cluster://${user}:${encodeURIComponent(passwordOf(user))}@${hosts}`;
  }

  /** Nodes that start wait until `letStart`. `waits` is for how many seconds they meant to. */
  async holdStarts() {
    const held = join(this.#programs.path, "held");
    await writeFile(held, "");
    return { letStart: () => rm(held), waits: async () => Number(await readFile(`${held}.asked`, "utf8")) };
  }

  async restart(...nodes: readonly ClusterNode[]): Promise<void> {
    await Promise.all(nodes.map((node) => node.stop()));
    await Promise.all(nodes.map((node) => node.start()));
  }

  /** These nodes forget those, at once. */
  async forget(those: readonly ClusterNode[], by: readonly ClusterNode[]): Promise<void> {
    const ids = await Promise.all(those.map((node) => node.id()));
    for (const node of by) await node.ask(...ids.map((id) => `CLUSTER FORGET ${id}`));
  }

  async roles(): Promise<(string | undefined)[]> {
    return await Promise.all(this.all.map(roleOf));
  }

  async create(nodes?: readonly ClusterNode[]): Promise<Created> {
    return await create(this.urlFor(CREATOR, nodes));
  }
}

export async function roleOf(node: ClusterNode): Promise<string | undefined> {
  return /^role:(\w+)/m.exec(await node.ask("INFO replication").catch(() => ""))?.[1];
}

/** Nodes for the tests of one file. */
export function deployedNodes(): DeployedNodes {
  const nodes = new DeployedNodes();
  const noLeaks = watchLeaks();
  beforeAll(() => nodes.start());
  afterAll(async () => {
    await nodes.stop();
    await noLeaks();
  });
  return nodes;
}

export interface Created {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs create-cluster.ts in this process. */
export async function create(url: string): Promise<Created> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()];
  const code = await run({ env: { REDIS_URL: url }, stdout, stderr });
  stdout.end();
  stderr.end();
  return { code, stdout: await text(stdout), stderr: await text(stderr) };
}

/** Resolves when a relay's /ready says that it is ready, with what it is degraded by. */
export async function untilReady(url: string, degraded?: readonly string[]): Promise<void> {
  await until(`it is ready, without ${degraded ?? "nothing"}`, async () => {
    const ready = await fetch(`${url}/ready`);
    const said = (await ready.json()) as { degraded?: readonly string[] };
    return ready.status === 200 && String(said.degraded) === String(degraded);
  });
}
