import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { pythonProgram } from "../../../../deploy/local/python-program.mjs";
import { MEMORY_PROBE } from "../../../support/pod-process.ts";
import { residentBytes } from "../../accounting.ts";
import { SEND_EVERY_MS, SEND_TIMEOUT_S } from "./verdict.ts";

/**
 * Between the soak and its processes of agents, of either language: JSON, a line each. The first line of a process's input
 * is its orders, the second ends the sending, the end of the input closes the connectors. Its output is what is told. At
 * SIGUSR2 it frees what is garbage, and says `{"msg": "held"}`.
 */

export interface Orders {
  readonly agents: readonly AgentOrders[];
  /** Of each agent's first message: higher than all of the process before it. */
  readonly first_number: number;
  readonly send_every_ms: number;
  readonly send_timeout_ms: number;
}

export interface AgentOrders {
  /** Of its pod. */
  readonly url: string;
  readonly agent: string;
  /** With the names of a key file. */
  readonly key: Readonly<Record<string, string>>;
  /** Whom it sends to, in turn. */
  readonly partners: readonly string[];
}

/** `id` is the text of the message: sender, target, and a number that rises. `at`: milliseconds on the clock that all processes of the machine share: Python's `time.monotonic()`. */
export type Told =
  | { readonly told: "online"; readonly agent: string; readonly at: number }
  | { readonly told: "sent"; readonly id: string; readonly at: number }
  | {
      readonly told: "accepted";
      readonly id: string;
      readonly at: number;
      readonly duplicate: boolean;
      readonly realtime: boolean;
    }
  | {
      readonly told: "failed";
      readonly id: string;
      readonly at: number;
      readonly code: string;
      readonly outcome: "refused" | "unknown";
    }
  | { readonly told: "delivered"; readonly id: string; readonly agent: string; readonly at: number }
  /** An `error` event. */
  | { readonly told: "problem"; readonly code: string };

export const LANGUAGES = ["TypeScript", "Python"] as const;
export type Language = (typeof LANGUAGES)[number];

const fileOf = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const COMMANDS: Record<Language, () => readonly [string, ...string[]]> = {
  TypeScript: () => [process.execPath, ...MEMORY_PROBE, fileOf("agents.ts")],
  Python: () => [pythonProgram(), fileOf("agents.py")],
};
/** More messages than an agent sends in the life of a process. */
const NUMBERS_OF_A_LIFE = 1_000_000;

/** Agents of one language that share a process, and one after the other its lives. */
export class Crowd {
  readonly name: string;
  readonly agents: readonly AgentOrders[];
  /** Exit codes and signals that no kill of this soak explains. */
  readonly unexpectedEnds: string[] = [];
  readonly #language: Language;
  readonly #hear: (told: Told, life: string) => void;
  #lives = 0;
  #child: ChildProcessWithoutNullStreams | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #held = Promise.withResolvers<void>();

  /** @param hear gets all that is told, with a name of the process that tells it. */
  constructor(
    name: string,
    language: Language,
    agents: readonly AgentOrders[],
    hear: (told: Told, life: string) => void,
  ) {
    this.name = name;
    this.agents = agents;
    this.#language = language;
    this.#hear = hear;
  }

  /** Of the process that there is. */
  get life(): string {
    return `${this.name} ${this.#lives}`;
  }

  start(): void {
    this.#lives += 1;
    const { life } = this;
    const PYTHONPATH = fileOf("../../../../connector-python/src");
    const [program, ...rest] = COMMANDS[this.#language]();
    const child = spawn(program, rest, { env: { ...process.env, PYTHONPATH, PYTHONDONTWRITEBYTECODE: "1" } });
    this.#child = child;
    child.stdin.on("error", () => {}); // It may be gone.
    child.stderr.pipe(process.stderr, { end: false });
    createInterface(child.stdout).on("line", (line) => {
      const told = JSON.parse(line);
      if (told.msg === "held") this.#held.resolve();
      else this.#hear(told, life);
    });
    this.#ended = once(child, "close");
    void this.#ended.then(() => this.#sawEnd(child));
    const orders: Orders = {
      agents: this.agents,
      first_number: this.#lives * NUMBERS_OF_A_LIFE,
      send_every_ms: SEND_EVERY_MS,
      send_timeout_ms: SEND_TIMEOUT_S * 1000,
    };
    child.stdin.write(`${JSON.stringify(orders)}\n`);
  }

  /** Resolves when all is read that the process told. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    child?.kill("SIGKILL");
    await this.#ended;
  }

  /** Resident memory once garbage is freed, bytes. Rejects when the process has ended. */
  async resident(): Promise<number> {
    if (this.#child === undefined) throw new Error(`${this.name} does not run.`);
    this.#held = Promise.withResolvers();
    this.#child.kill("SIGUSR2");
    await Promise.race([this.#held.promise, this.#ended]);
    return residentBytes(this.#child.pid as number);
  }

  /** Nobody begins another send. */
  hush(): void {
    this.#child?.stdin.write("\n");
  }

  /** Closes all connectors, and ends the process. */
  async stop(): Promise<void> {
    this.#child?.stdin.end();
    await this.#ended;
  }

  #sawEnd(child: ChildProcessWithoutNullStreams): void {
    if (this.#child !== child) return;
    this.#child = undefined;
    const { exitCode, signalCode } = child;
    if (exitCode !== 0) this.unexpectedEnds.push(`${this.name} ended with ${exitCode ?? signalCode}`);
  }
}
