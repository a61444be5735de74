import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach } from "@jest/globals";
import type { Stage } from "../../connector/test/kit.ts";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import type { Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";
import { use } from "../support/use.ts";

const DRIVER = fileURLToPath(new URL("driver.py", import.meta.url));
const SOURCES = fileURLToPath(new URL("../../connector-python/src", import.meta.url));

/** What a call of the Python connector raised. */
export class PythonError extends Error {
  readonly details: Frame;

  constructor(details: Frame) {
    super(details.code ?? String(details));
    this.details = details;
  }
}

/** A stage, and one process of Python, for the tests of a file. Each test finds both without connectors. */
export function withPython<Some extends Stage>(
  stage: Some,
): { readonly stage: Some; readonly python: PythonConnectors } {
  const python = new PythonConnectors();
  use({
    start: async () => {
      python.start();
      await stage.start();
    },
    stop: async () => {
      await python.stop();
      await stage.stop();
    },
  });
  afterEach(async () => {
    await python.clear();
    await stage.clear();
  });
  return { stage, python };
}

/** Connectors of `connector-python`, in one process. Names and members are those of Python. */
export class PythonConnectors {
  /** What its connectors told, in order: states, deliveries, notices, problems. */
  readonly told: Frame[] = [];
  #child!: ChildProcessWithoutNullStreams;
  #closed!: Promise<unknown>;
  readonly #calls = new Map<number, PromiseWithResolvers<Frame>>();
  #next = 0;

  /** Starts the process. */
  start(): void {
    const env = { ...process.env, PYTHONPATH: SOURCES, PYTHONUTF8: "1", PYTHONDONTWRITEBYTECODE: "1" };
    this.#child = spawn(pythonProgram(), ["-X", "dev", DRIVER], { env });
    this.#child.stderr.pipe(process.stderr);
    createInterface(this.#child.stdout).on("line", (line) => this.#read(JSON.parse(line)));
    this.#closed = once(this.#child, "close").then(() => {
      for (const call of this.#calls.values()) call.reject(new Error("Python ended."));
    });
  }

  /** Not started. @param options keyword arguments of `Connector`; `tokens`: what its credential callback gives in turn. */
  make(name: string, options: object): void {
    this.#write({ new: name, options });
  }

  /** Registered. */
  async online(name: string, options: object): Promise<void> {
    this.make(name, options);
    await this.call(name, "start");
  }

  /** Replies to each `message.send` with its own payload, from now on. */
  echo(name: string): void {
    this.#write({ echo: name });
  }

  /** Calls a method. Rejects with what it raised. */
  async call(name: string, method: string, args: readonly unknown[] = [], options: object = {}): Promise<Frame> {
    return await this.#answerTo((call) => ({ call, on: name, method, args, options }));
  }

  /** Resolves with the first thing that was told and fits. */
  async tells(what: string, fits: (told: Frame) => boolean): Promise<Frame> {
    await until(what, () => this.told.some(fits));
    return this.told.find(fits) as Frame;
  }

  /** The process stands still until `resume`: what comes in waits for it. */
  suspend(): void {
    this.#child.kill("SIGSTOP");
  }

  resume(): void {
    this.#child.kill("SIGCONT");
  }

  /** Closes and forgets all connectors. */
  async clear(): Promise<void> {
    await this.#answerTo((clear) => ({ clear }));
    this.told.length = 0;
  }

  /** Closes all connectors and ends the process. Rejects when it did not end by itself. */
  async stop(): Promise<void> {
    this.#child.stdin.end();
    await this.#closed;
    if (this.#child.exitCode !== 0) throw new Error(`Python ended with ${this.#child.exitCode}.`);
  }

  async #answerTo(request: (number: number) => object): Promise<Frame> {
    const call = Promise.withResolvers<Frame>();
    this.#next += 1;
    this.#calls.set(this.#next, call);
    this.#write(request(this.#next));
    return await call.promise;
  }

  #read({ call, result, error, ...told }: Frame): void {
    if (call === undefined) {
      this.told.push(told);
      return;
    }
    const waiting = this.#calls.get(call);
    this.#calls.delete(call);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new PythonError(error));
  }

  #write(request: object): void {
    this.#child.stdin.write(`${JSON.stringify(request)}\n`);
  }
}
