import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { pythonProgram } from "../../deploy/local/python-program.mjs";
import type { Frame } from "../support/agent.ts";
import { until } from "../support/until.ts";

export const LANGUAGES = ["typescript", "python"] as const;
export type Language = (typeof LANGUAGES)[number];

/** What a call failed with: `code`, `hint`, `retry`, `outcome`, `close_code`, `envelope_id`, `missing`, `errors`. */
export class CallFailed extends Error {
  readonly details: Frame;

  constructor(details: Frame) {
    super(`${details.code}: ${details.hint ?? ""}`);
    this.details = details;
  }
}

const fileOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const COMMANDS: Record<Language, () => readonly [string, ...string[]]> = {
  typescript: () => [process.execPath, fileOf("driver.ts")],
  python: () => [pythonProgram(), fileOf("driver.py")],
};

/**
 * All connectors of one language, in one process: JSON objects, one a line.
 *
 * {"call": n, "agent": name, "does": action, "given": {…}, "options": {…}} is answered by {"call": n, "result": …} or
 * {"call": n, "error": {…}}; the first call of a name makes its connector, with these options. What the connector tells comes
 * as {"agent": name, "event": …, "value": {…}}. Names are those of the wire, durations milliseconds, what is absent is null. A
 * delivery has a `number`, by which `reply` finds it.
 */
export class DriverProcess {
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #closed: Promise<unknown>;
  readonly #calls = new Map<number, PromiseWithResolvers<Frame>>();
  /** What was told and not heard yet, by agent and event. */
  readonly #told = new Map<string, Frame[]>();
  #next = 0;

  constructor(language: Language) {
    const env = {
      ...process.env,
      PYTHONPATH: fileOf("../../connector-python/src"),
      PYTHONDONTWRITEBYTECODE: "1",
    };
    const [program, ...rest] = COMMANDS[language]();
    this.#child = spawn(program, rest, { env });
    this.#child.stderr.pipe(process.stderr);
    createInterface(this.#child.stdout).on("line", (line) => this.#read(JSON.parse(line)));
    this.#closed = once(this.#child, "close").then(() => {
      for (const call of this.#calls.values()) call.reject(new Error(`The driver of ${language} ended.`));
    });
  }

  /** Rejects with CallFailed. */
  async call(agent: string, does: string, given: Frame, options: object): Promise<Frame> {
    const call = Promise.withResolvers<Frame>();
    this.#next += 1;
    this.#calls.set(this.#next, call);
    this.#child.stdin.write(`${JSON.stringify({ call: this.#next, agent, does, given, options })}\n`);
    return await call.promise;
  }

  /** The next event of this kind, in order. */
  async hears(agent: string, event: string): Promise<Frame> {
    const told = this.unheard(agent, event);
    await until(`${agent} hears ${event}`, () => told.length > 0);
    return told.shift() as Frame;
  }

  unheard(agent: string, event: string): Frame[] {
    const name = `${agent} ${event}`;
    const told = this.#told.get(name) ?? [];
    this.#told.set(name, told);
    return told;
  }

  /** Closes all connectors. Rejects when the process did not end by itself. */
  async stop(): Promise<void> {
    this.#child.stdin.end();
    await this.#closed;
    if (this.#child.exitCode !== 0) throw new Error(`A driver ended with ${this.#child.exitCode}.`);
  }

  #read({ call, result, error, agent, event, value }: Frame): void {
    if (call === undefined) {
      this.unheard(agent, event).push(value);
      return;
    }
    const waiting = this.#calls.get(call);
    this.#calls.delete(call);
    if (error === undefined) waiting?.resolve(result);
    else waiting?.reject(new CallFailed(error));
  }
}
