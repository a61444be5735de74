import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { COMPILE_CACHE } from "../../../test/support/compile-cache.ts";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { until } from "../../../test/support/until.ts";
import { run } from "../../src/cli/run.ts";
import { jsonLines } from "../kit.ts";

export const BIN = fileURLToPath(new URL("../../bin/relay.mjs", import.meta.url));

const FILE = /^[\w.]+\.(?:json|credential)$/;

/** A command says what it waits for when that takes 2 s: a matter of how busy the machine is. */
const WAITS = /^(?:\{"event":"waiting","message":")?Waiting for .*\n/gm;

export type Environment = Readonly<Record<string, string>>;

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
    await until(name, condition, 20_000).catch((error) => {
      throw new Error(`${error.message}\n${this.stdout}\n${this.stderr}`);
    });
  }
}

/** Runs command lines in a folder of its own. */
export class Shell {
  readonly #running: Running[] = [];
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;

  get folder(): string {
    return this.#folder?.path as string;
  }

  async start(): Promise<void> {
    this.#folder = await temporaryFolder();
  }

  file(name: string): string {
    return join(this.folder, name);
  }

  async write(name: string, content: object | string, mode = 0o600): Promise<void> {
    await writeFile(this.file(name), typeof content === "string" ? content : JSON.stringify(content), { mode });
  }

  // biome-ignore lint/suspicious/noExplicitAny: what a program wrote has no type yet.
  async json(name: string): Promise<any> {
    return JSON.parse(await readFile(this.file(name), "utf8"));
  }

  async mode(name: string): Promise<number> {
    return (await stat(this.file(name))).mode & 0o777;
  }

  /** Its environment is what is given here and nothing else, but for the folder of its sockets. */
  begin(args: readonly string[], env: Environment = {}): Running {
    const child = spawn(process.execPath, [BIN, ...args], {
      cwd: this.folder,
      env: { ...COMPILE_CACHE, PATH: process.env.PATH, XDG_RUNTIME_DIR: this.folder, ...env },
    });
    const running = new Running(child);
    this.#running.push(running);
    return running;
  }

  /** @returns its exit code and what it printed, but for what it said that it waits for. */
  async run(args: readonly string[], { env = {}, stdin = "" }: { env?: Environment; stdin?: string } = {}) {
    const running = this.begin(args, env);
    running.child.stdin?.end(stdin);
    const code = await running.end();
    return { code, stdout: running.stdout, stderr: running.stderr.replace(WAITS, "") };
  }

  /** The same in this process, for commands that need nothing of one. Words that look like files of the folder name those. */
  async runHere(args: readonly string[], stdin = "") {
    const printed = { stdout: "", stderr: "" };
    const collected = (name: keyof typeof printed) =>
      new Writable({
        write: (chunk, _, done) => {
          printed[name] += String(chunk);
          done();
        },
      });
    const [stdout, stderr] = [collected("stdout"), collected("stderr")];
    const signal = new AbortController().signal;
    const words = args.map((word) => (FILE.test(word) ? this.file(word) : word));
    const code = await run(words, { env: {}, stdin: Readable.from([stdin]), stdout, stderr, signal });
    return { code, ...printed };
  }

  /** Ends what one test began. */
  async clear(): Promise<void> {
    await Promise.all(this.#running.splice(0).map((running) => running.end("SIGKILL")));
  }

  async stop(): Promise<void> {
    await this.clear();
    await this.#folder?.[Symbol.asyncDispose]();
  }
}
