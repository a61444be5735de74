import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../../test/support/free-port.ts";
import type { Pod } from "../../../test/support/relay.ts";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { until } from "../../../test/support/until.ts";
import { serveWhole } from "../../../test/support/whole-relay.ts";
import { jsonLines, Stage } from "../kit.ts";

export const BIN = fileURLToPath(new URL("../../bin/relay.mjs", import.meta.url));

type Environment = Readonly<Record<string, string>>;

/** A `relay` that runs. */
export class Running {
  readonly child: ChildProcess;
  readonly #ended: Promise<unknown>;
  stdout = "";
  stderr = "";

  constructor(child: ChildProcess) {
    this.child = child;
    this.#ended = once(child, "close");
    child.stdout?.on("data", (chunk) => (this.stdout += String(chunk)));
    child.stderr?.on("data", (chunk) => (this.stderr += String(chunk)));
  }

  /** The JSON lines on stdout so far. */
  // biome-ignore lint/suspicious/noExplicitAny: what a program prints has no type yet.
  get lines(): any[] {
    return jsonLines(this.stdout);
  }

  /** The JSON lines on stderr so far, of commands with `--json`. */
  // biome-ignore lint/suspicious/noExplicitAny: what a program prints has no type yet.
  get reports(): any[] {
    return jsonLines(this.stderr);
  }

  /** Resolves when an event was reported on stderr so many times. */
  async reported(event: string, times = 1): Promise<void> {
    const count = () => this.reports.filter((report) => report.event === event).length;
    await this.#until(`it reported ${event}, ${times} times`, () => count() >= times);
  }

  /** Resolves when a text stands on stderr so many times. */
  async wrote(text: string, times = 1): Promise<void> {
    await this.#until(`it wrote ${text}, ${times} times`, () => this.stderr.split(text).length > times);
  }

  async prints(count: number): Promise<void> {
    await this.#until(`it printed ${count} lines`, () => this.lines.length >= count);
  }

  /** @returns the exit code. */
  async end(signal?: NodeJS.Signals): Promise<number | null> {
    if (signal !== undefined) this.child.kill(signal);
    await this.#ended;
    return this.child.exitCode;
  }

  async #until(name: string, condition: () => boolean): Promise<void> {
    await until(name, condition, 10_000).catch((error) => {
      throw new Error(`${error.message}\n${this.stdout}\n${this.stderr}`);
    });
  }
}

/** An address where nothing listens. */
export async function nowhere(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}

/** A whole relay on one address, key files of its agents, and command lines that are run against it. */
export class CommandLine {
  readonly stage: Stage;
  readonly #names: readonly string[];
  readonly #running: Running[] = [];
  readonly #files: { folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined } = { folder: undefined };
  #address: Pod | undefined;
  #pod: Pod | undefined;

  constructor(...names: readonly string[]) {
    this.stage = new Stage(...names);
    this.#names = names;
  }

  get url(): string {
    return this.#address?.url as string;
  }

  get folder(): string {
    return this.#files.folder?.path as string;
  }

  async start(): Promise<void> {
    await this.stage.start();
    this.#files.folder = await temporaryFolder();
    for (const name of this.#names) await this.writeKey(name);
    await this.serve();
  }

  /** Starts the relay; a second time, on the address that it had before. */
  async serve(): Promise<void> {
    this.#pod = await serveWhole(this.stage.relay, this.#address && { PORT: String(this.#address.port) });
    this.#address ??= this.#pod;
  }

  async shut(): Promise<void> {
    await this.#pod?.stop();
  }

  async writeKey(name: string, mode = 0o600): Promise<void> {
    const { agent, key } = this.stage.agent(name);
    const secret = key.alg === "ed25519" ? { private_key: key.privateKey } : { secret: key.secret };
    const record = { agent_id: agent, key_id: key.keyId, alg: key.alg, ...secret };
    await writeFile(this.keyFile(name), JSON.stringify(record), { mode });
  }

  keyFile(name: string): string {
    return join(this.folder, `${name}.json`);
  }

  /** Its environment is what is given here and nothing else, but for where the relay is. */
  begin(args: readonly string[], env: Environment = {}): Running {
    const child = spawn(process.execPath, [BIN, ...args], {
      cwd: this.folder,
      env: { PATH: process.env.PATH, XDG_RUNTIME_DIR: this.folder, RELAY_URL: this.url, ...env },
    });
    const running = new Running(child);
    this.#running.push(running);
    return running;
  }

  async run(args: readonly string[], { env = {}, stdin = "" }: { env?: Environment; stdin?: string } = {}) {
    const running = this.begin(args, env);
    running.child.stdin?.end(stdin);
    const code = await running.end();
    const { stdout, stderr } = running;
    return { code, stdout, stderr };
  }

  /** A `relay listen` whose agent is online. */
  async listen(name: string, ...args: string[]): Promise<Running> {
    const running = this.begin(["listen", "--json", "--key", this.keyFile(name), ...args]);
    await running.reported("online");
    return running;
  }

  /** Ends what one test began. */
  async clear(): Promise<void> {
    await Promise.all(this.#running.splice(0).map((running) => running.end("SIGKILL")));
    await this.stage.clear();
  }

  async stop(): Promise<void> {
    await this.clear();
    await this.shut();
    await this.stage.stop();
    await this.#files.folder?.[Symbol.asyncDispose]();
  }
}
