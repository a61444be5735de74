import { type ChildProcess, type ExecFileOptions, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { until } from "./until.ts";

const { NODE_COMPILE_CACHE } = process.env;

/** For processes whose environment is not the tests' own: where Node keeps what it compiled, as `jest.config.mjs` says. */
export const COMPILE_CACHE: Readonly<Record<string, string>> =
  NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE };

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));
/** Arguments of Node for a process that is asked what it holds. */
export const MEMORY_PROBE = ["--expose-gc", "--import", new URL("memory-probe.ts", import.meta.url).href] as const;
const ERROR_LEVELS: readonly string[] = ["error", "fatal"];

/** What a process holds after a full collection. */
export interface Held {
  readonly heapUsed: number;
  readonly arrayBuffers: number;
  /** Open TCP sockets. */
  readonly sockets: number;
}

/** What the kernel allows a process. */
export interface ProcessLimits {
  readonly maxOpenFiles?: number;
}

/** A service as a process of its own, for tests in which a process must die. Its settings are all it is given. */
export class PodProcess {
  readonly port: number;
  readonly url: string;
  readonly log: string[];
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, port: number, log: string[]) {
    this.#child = child;
    this.port = port;
    this.url = `http://127.0.0.1:${port}`;
    this.log = log;
  }

  /**
   * Resolves when the process listens.
   * @param main path of a main.ts, from the repository on.
   * @param nodeArguments arguments of Node itself.
   */
  static async start(
    main: string,
    environment: Record<string, string>,
    nodeArguments: readonly string[] = [],
    limits: ProcessLimits = {},
  ): Promise<PodProcess> {
    const [program, ...rest] = limited([process.execPath, ...nodeArguments, main], limits);
    const child = spawn(program, rest, {
      cwd: REPOSITORY,
      env: { ...COMPILE_CACHE, ...environment },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const log: string[] = [];
    const port = await new Promise<number>((resolve, reject) => {
      child.once("exit", (code) => reject(new Error(`${main} ended with ${code}:\n${log.join("\n")}`)));
      createInterface({ input: child.stdout }).on("line", (line) => {
        log.push(line);
        const { msg, listener, port } = JSON.parse(line);
        if (msg === "listening" && listener === undefined) resolve(port);
      });
    });
    return new PodProcess(child, port, log);
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Lines of level error or worse. */
  get errorLines(): string[] {
    return this.log.filter((line) => ERROR_LEVELS.includes(JSON.parse(line).level));
  }

  /** Only of a process with `MEMORY_PROBE`. */
  async held(): Promise<Held> {
    const from = this.log.length;
    this.#child.kill("SIGUSR2");
    const report = () =>
      this.log
        .slice(from)
        .map((line) => JSON.parse(line))
        .find(({ msg }) => msg === "held");
    await until("the process says what it holds", () => report() !== undefined || this.hasEnded);
    if (report() === undefined) throw new Error("The process ended before it said what it holds.");
    return report().held;
  }

  /** Sends a signal; resolves with the exit code, or null when the signal itself ended the process. */
  async end(signal: "SIGTERM" | "SIGKILL"): Promise<number | null> {
    if (!this.hasEnded) {
      const exited = once(this.#child, "exit");
      this.#child.kill(signal);
      await exited;
    }
    return this.#child.exitCode;
  }

  /** The process hangs: its sockets stay open and nothing is done, until `thaw`. */
  freeze(): void {
    this.#child.kill("SIGSTOP");
  }

  thaw(): void {
    this.#child.kill("SIGCONT");
  }

  async stop(): Promise<void> {
    await this.end("SIGKILL");
  }
}

/** Node itself raises a soft limit as far as it may: the shell sets the hard one, too. */
function limited(command: readonly [string, ...string[]], { maxOpenFiles }: ProcessLimits): [string, ...string[]] {
  if (maxOpenFiles === undefined) return [...command];
  return ["/bin/sh", "-c", `ulimit -n ${maxOpenFiles} && exec "$0" "$@"`, ...command];
}

export interface Ended {
  /** Exit code, the signal that ended it, or why it could not be run. */
  readonly code: number | string | null | undefined;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program to its end. @param stdin is all that it reads. */
export function runProgram(
  program: string,
  args: readonly string[],
  options: ExecFileOptions = {},
  stdin = "",
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = execFile(program, args, { ...options, encoding: "utf8" }, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : (error.code ?? error.signal), stdout, stderr });
    });
    child.stdin?.on("error", () => undefined).end(stdin);
  });
}
