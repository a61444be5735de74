import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import { until } from "../support/until.ts";

export const PYTHON_EXAMPLE = fileURLToPath(new URL("../../examples/python/agent.py", import.meta.url));

/** Of the package that it imports. */
export const PYTHON_SOURCES = fileURLToPath(new URL("../../connector-python/src", import.meta.url));

/** `examples/python/agent.py` as a process. */
export class PythonAgent {
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  #printed = "";

  /** @throws {Error} what to install, where there is no Python that can run it. */
  constructor(args: readonly string[]) {
    const settings = { PYTHONUTF8: "1", PYTHONDONTWRITEBYTECODE: "1", PYTHONPATH: PYTHON_SOURCES };
    this.#child = spawn(pythonProgram(), [PYTHON_EXAMPLE, ...args], { env: settings });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on("data", (chunk) => (this.#printed += String(chunk)));
    }
    this.#closed = once(this.#child, "close");
  }

  /** Both streams. */
  get printed(): string {
    return this.#printed;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Resolves when the text has been printed so many times. */
  async says(text: string, times = 1): Promise<void> {
    await until(`the agent says ${text}`, () => this.#printed.split(text).length > times || this.hasEnded);
    if (this.#printed.split(text).length <= times) throw new Error(`It ended without: ${text}\n${this.#printed}`);
  }

  /** Resolves with the exit code once the agent has ended by itself. */
  async end(withinMs?: number): Promise<number | null> {
    await until("the agent ends by itself", () => this.hasEnded, withinMs);
    await this.#closed;
    return this.#child.exitCode;
  }

  /** Sends a signal; resolves with the exit code, or null when the signal itself ended the process. */
  async stop(signal: "SIGINT" | "SIGKILL" = "SIGKILL"): Promise<number | null> {
    if (!this.hasEnded) this.#child.kill(signal);
    await this.#closed;
    return this.#child.exitCode;
  }
}
