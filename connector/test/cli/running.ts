import { PassThrough, type Writable } from "node:stream";
import { run } from "../../src/cli/run.ts";
import { Printed } from "./printed.ts";

export type Environment = Readonly<Record<string, string>>;

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
