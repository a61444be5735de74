import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import os from "node:os";
import { PassThrough, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { COMPILE_CACHE } from "../../../test/support/pod-process.ts";
import { until } from "../../../test/support/until.ts";
import { run } from "../../src/cli/run.ts";
import { jsonLines } from "../kit.ts";

export const BIN = fileURLToPath(new URL("../../bin/relay.mjs", import.meta.url));

export type Environment = Readonly<Record<string, string>>;

/** The control sockets are below the home folder that the system has for the user, which no environment variable moves. */

const userInfo = os.userInfo;

/** In this process the user has another home folder, or its own again. */
export function setHome(homedir?: string): void {
  const moved = () => ({ ...userInfo(), homedir: homedir as string });
  Object.assign(os, { userInfo: homedir === undefined ? userInfo : moved });
}

/** Options of Node: the same for a process that begins. */
export function atHome(homedir: string): string[] {
  const script = `import os from "node:os"; const info = os.userInfo(); os.userInfo = () => ({ ...info, homedir: ${JSON.stringify(homedir)} });`;
  return ["--import", `data:text/javascript,${encodeURIComponent(script)}`];
}

/** What a program has printed so far. */
class Printed {
  stdout = "";
  stderr = "";

  /** The JSON lines on stdout. */
  // biome-ignore lint/suspicious/noExplicitAny: what a program prints has no type yet.
  get lines(): any[] {
    return jsonLines(this.stdout);
  }

  /** The JSON lines on stderr, of commands with `--json`. */
  // biome-ignore lint/suspicious/noExplicitAny: what a program prints has no type yet.
  get reports(): any[] {
    return jsonLines(this.stderr);
  }

  /** Resolves when stderr has this many reports of an event. */
  async reported(event: string, times = 1): Promise<void> {
    const count = () => this.reports.filter((report) => report.event === event).length;
    await this.#until(`it reported ${event}, ${times} times`, () => count() >= times);
  }

  /** Resolves when stderr has a text this many times. */
  async wrote(text: string, times = 1): Promise<void> {
    await this.#until(`it wrote ${text}, ${times} times`, () => this.stderr.split(text).length > times);
  }

  async prints(count: number): Promise<void> {
    await this.#until(`it printed ${count} lines`, () => this.lines.length >= count);
  }

  /** @returns a stream that keeps what is written to it, and passes it on to another. */
  collect(name: "stdout" | "stderr", other?: Writable): Writable {
    return new Writable({
      write: (chunk, _, done) => {
        this[name] += String(chunk);
        other?.write(chunk);
        done();
      },
    });
  }

  async #until(name: string, condition: () => boolean): Promise<void> {
    await until(name, condition, 20_000).catch((error) => {
      throw new Error(`${error.message}\n${this.stdout}\n${this.stderr}`);
    });
  }
}

/** A command of `relay` that runs in this process. */
export class Running extends Printed {
  readonly stdin = new PassThrough();
  /** Its exit code. Undefined until it ends. */
  code: number | undefined;
  readonly #stopped = new AbortController();
  readonly #ended: Promise<number>;

  /** @param output gets what it prints, too. */
  constructor(args: readonly string[], env: Environment, output?: Writable) {
    super();
    const { stdin } = this;
    const [stdout, stderr] = [this.collect("stdout", output), this.collect("stderr")];
    this.#ended = run([...args], { env, stdin, stdout, stderr, signal: this.#stopped.signal }).then((code) => {
      this.code = code;
      return code;
    });
  }

  /** @returns the exit code. */
  async end(): Promise<number> {
    return await this.#ended;
  }

  /** Ends it as a signal does. @returns the exit code. */
  async stop(): Promise<number> {
    this.#stopped.abort();
    return await this.#ended;
  }
}

/** A Node program as a process of its own. Its environment is what is given here, and PATH; its home folder is `cwd`. */
export class Process extends Printed {
  readonly child: ChildProcess;
  readonly #closed: Promise<unknown>;

  constructor(args: readonly string[], { cwd, env }: { cwd: string; env: Environment }) {
    super();
    this.child = spawn(process.execPath, [...atHome(cwd), ...args], {
      cwd,
      env: { ...COMPILE_CACHE, PATH: process.env.PATH, ...env },
    });
    this.#closed = once(this.child, "close");
    this.child.stdout?.on("data", (chunk) => (this.stdout += String(chunk)));
    this.child.stderr?.on("data", (chunk) => (this.stderr += String(chunk)));
  }

  /** Sends the signal, if one is given. @returns the exit code. */
  async end(signal?: NodeJS.Signals): Promise<number | null> {
    if (signal !== undefined) this.child.kill(signal);
    await this.#closed;
    return this.child.exitCode;
  }
}
