import { readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ClusterMember, idOf } from "../redis/cluster-forming.ts";
import { askRedis } from "../redis/redis-words.ts";
import { RedisProcess, redisArguments } from "./redis-process.ts";
import { redisProgram } from "./redis-program.mjs";

/** How the nodes of a cluster are run, and how somebody who may do everything logs in to them. */
export interface NodeRunner {
  /** @param settings arguments of redis-server. */
  readonly command: (folder: string, settings: readonly string[]) => readonly string[] | Promise<readonly string[]>;
  readonly settings: Readonly<Record<string, string>>;
  readonly env?: NodeJS.ProcessEnv;
  /** Who uses the cluster, as its URL has it: `user:password@`; nobody in particular without it. */
  readonly userInfo?: string;
  /** Inline commands. */
  readonly login: readonly string[];
}

export const PLAIN_NODES: NodeRunner = {
  command: (_folder, settings) => [redisProgram(), ...settings],
  settings: {},
  login: [],
};

/** One Redis of a cluster on loopback. Started again after `stop`, it is another node at the same address: it kept nothing. */
export class ClusterNode implements ClusterMember {
  readonly port: number;
  /** Of the cluster's bus. */
  readonly busPort: number;
  readonly #runner: NodeRunner;
  readonly #process: RedisProcess;

  constructor(runner: NodeRunner, port: number, busPort: number, nodeTimeoutMs: number) {
    this.port = port;
    this.busPort = busPort;
    this.#runner = runner;
    const settings = {
      port: String(port),
      bind: "127.0.0.1",
      "cluster-enabled": "yes",
      "cluster-port": String(busPort),
      "cluster-node-timeout": String(nodeTimeoutMs),
      // A shard that is lost must not take the others along.
      "cluster-require-full-coverage": "no",
      // A replica has nothing to wait for: it is one of few.
      "repl-diskless-sync-delay": "0",
      ...runner.settings,
    };
    this.#process = new RedisProcess(
      {
        command: (folder) => runner.command(folder, redisArguments(folder, settings)),
        answers: () => this.#answers(),
        ...(runner.env === undefined ? {} : { env: runner.env }),
      },
      tmpdir(),
    );
  }

  get meeting(): string {
    return `127.0.0.1 ${this.port} ${this.busPort}`;
  }

  get folder(): string {
    return this.#process.folder;
  }

  async start(): Promise<void> {
    await this.#process.start();
  }

  async stop(): Promise<void> {
    await this.#process.stop();
  }

  /** Answers to inline commands, as they come. @throws {Error} when one is refused. */
  async ask(...commands: readonly string[]): Promise<string> {
    return await askRedis({ port: this.port, host: "127.0.0.1" }, this.#runner.login, commands);
  }

  /** Of its process. */
  async pid(): Promise<number> {
    return Number(await readFile(join(this.folder, "redis.pid"), "utf8"));
  }

  async #answers(): Promise<boolean> {
    return await this.ask("PING").then(
      (said) => said.includes("+PONG"),
      () => false,
    );
  }

  /** The node's name in the cluster. */
  async id(): Promise<string> {
    return await idOf(this);
  }
}
