import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** An address where nothing listens: whoever asks a registry is refused. */
const NO_REGISTRY = "http://127.0.0.1:9";

export interface Run {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A person's machine: an empty home, an npm that has nothing yet and reaches no registry, and the Node that runs the tests. */
export class Machine {
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;

  async start(): Promise<this> {
    this.#folder = await temporaryFolder();
    return this;
  }

  async stop(): Promise<void> {
    await this.#folder?.[Symbol.asyncDispose]();
  }

  /** Makes an empty folder. */
  async folder(name: string): Promise<string> {
    const path = join(this.#home, name);
    await mkdir(path);
    return path;
  }

  /** Runs a line of a shell. */
  async shell(line: string, cwd: string): Promise<Run> {
    return await this.run("sh", ["-ec", line], cwd);
  }

  /** @param node whose `node` is the first on the PATH. */
  async run(program: string, args: readonly string[], cwd: string, node = process.execPath): Promise<Run> {
    const env = {
      PATH: [dirname(node), process.env.PATH].join(delimiter),
      HOME: this.#home,
      npm_config_cache: join(this.#home, "npm-cache"),
      npm_config_registry: NO_REGISTRY,
      npm_config_audit: "false",
      npm_config_update_notifier: "false",
    };
    return await promisify(execFile)(program, [...args], { cwd, env, timeout: 120_000 }).then(
      ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
      ({ code, stdout, stderr }) => ({ code, stdout, stderr }),
    );
  }

  get #home(): string {
    return (this.#folder as { path: string }).path;
  }
}
