import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { COMPILE_CACHE } from "../../../test/support/compile-cache.ts";
import { atHome } from "./home.ts";
import { Printed } from "./printed.ts";

export const BIN = fileURLToPath(new URL("../../bin/relay.mjs", import.meta.url));

/** A Node program as a process of its own. Its environment is what is given here, and PATH; its home folder is `cwd`. */
export class Process extends Printed {
  readonly child: ChildProcess;
  readonly #closed: Promise<unknown>;

  constructor(args: readonly string[], { cwd, env }: { cwd: string; env: Readonly<Record<string, string>> }) {
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
