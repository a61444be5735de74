import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import os from "node:os";
import { join } from "node:path";
import { PassThrough, Writable } from "node:stream";
import { fileURLToPath } from "node:url";
import { expect } from "@jest/globals";
import { freePort } from "../../../test/support/free-port.ts";
import { COMPILE_CACHE } from "../../../test/support/pod-process.ts";
import { type Pod, serveWhole } from "../../../test/support/relay.ts";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { until } from "../../../test/support/until.ts";
import { run } from "../../src/cli/run.ts";
import { jsonLines, Stage } from "../kit.ts";

export const BIN = fileURLToPath(new URL("../../bin/relay.mjs", import.meta.url));

export const [ALICE, BOB] = ["agent://alice", "agent://bob-hmac"];
export const HELLO = '{"message":"Hello, Bob."}';

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

/** A command says what it waits for when that takes 2 s: a matter of how busy the machine is. */
const WAITS = /^(?:\{"event":"waiting","message":")?Waiting for .*\n/gm;

/** Runs command lines in a folder of its own, which is the working directory and the home of this process from `start` to `stop`. */
export class Shell {
  readonly #running: Running[] = [];
  readonly #before = process.cwd();
  #folder: Awaited<ReturnType<typeof temporaryFolder>> | undefined;

  get folder(): string {
    return this.#folder?.path as string;
  }

  async start(): Promise<void> {
    this.#folder = await temporaryFolder();
    process.chdir(this.folder);
    setHome(this.folder);
  }

  file(name: string): string {
    return join(this.folder, name);
  }

  async write(name: string, content: object | string, mode = 0o600): Promise<void> {
    await writeFile(this.file(name), typeof content === "string" ? content : JSON.stringify(content), { mode });
  }

  /** The text of a file; empty until there is one. */
  async text(name: string): Promise<string> {
    return await readFile(this.file(name), "utf8").catch(() => "");
  }

  // biome-ignore lint/suspicious/noExplicitAny: what a program wrote has no type yet.
  async json(name: string): Promise<any> {
    return JSON.parse(await readFile(this.file(name), "utf8"));
  }

  async mode(name: string): Promise<number> {
    return (await stat(this.file(name))).mode & 0o777;
  }

  /** @returns what a program of `sh` waits for a file with, or for the end of the test's folder. */
  waitFor(name: string): string {
    return `until [ -e ${this.file(name)} ] || [ ! -d ${this.folder} ]; do sleep 0.1; done`;
  }

  /** Its environment is what is given here and nothing else, but for PATH. */
  begin(args: readonly string[], env: Environment = {}): Running {
    const running = new Running(args, this.environment(env));
    this.#running.push(running);
    return running;
  }

  /** @returns its exit code and what it printed, but for what it said that it waits for. */
  async run(
    args: readonly string[],
    { env = {}, stdin = "" }: { env?: Environment; stdin?: string | Uint8Array } = {},
  ) {
    const running = this.begin(args, env);
    running.stdin.end(stdin);
    const code = await running.end();
    return { code, stdout: running.stdout, stderr: running.stderr.replace(WAITS, "") };
  }

  protected environment(env: Environment): Environment {
    return { PATH: process.env.PATH ?? "", ...env };
  }

  /** Ends what one test began. */
  async clear(): Promise<void> {
    await Promise.all(this.#running.splice(0).map((running) => running.stop()));
  }

  async stop(): Promise<void> {
    await this.clear();
    process.chdir(this.#before);
    setHome();
    await this.#folder?.[Symbol.asyncDispose]();
  }
}

/** An address where nothing listens. */
export async function nowhere(): Promise<string> {
  return `http://127.0.0.1:${await freePort()}`;
}

/** A whole relay on one address, key files of its agents, and command lines that are run against it. */
export class CommandLine extends Shell {
  readonly stage: Stage;
  readonly #names: readonly string[];
  /** No other process takes it while the relay is away. */
  #port: number | undefined;
  #pod: Pod | undefined;

  constructor(...names: readonly string[]) {
    super();
    this.stage = new Stage(...names);
    this.#names = names;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  override async start(): Promise<void> {
    await this.stage.start();
    await super.start();
    for (const name of this.#names) await this.writeKey(name);
    await this.serve();
  }

  /** Starts the relay; a second time, on the address that it had before. */
  async serve(): Promise<void> {
    this.#port ??= await freePort();
    this.#pod = await serveWhole(this.stage.relay, { PORT: String(this.#port) });
  }

  async shut(): Promise<void> {
    await this.#pod?.stop();
  }

  async writeKey(name: string, mode = 0o600): Promise<void> {
    const { agent, key } = this.stage.agent(name);
    const secret = key.alg === "ed25519" ? { private_key: key.privateKey } : { secret: key.secret };
    const record = { agent_id: agent, key_id: key.keyId, alg: key.alg, ...secret };
    await this.write(`${name}.json`, record, mode);
  }

  keyFile(name: string): string {
    return this.file(`${name}.json`);
  }

  protected override environment(env: Environment): Environment {
    return super.environment({ RELAY_URL: this.url, ...env });
  }

  /** A `relay listen` whose agent is online. */
  async listen(name: string, ...args: string[]): Promise<Running> {
    const running = this.begin(["listen", "--json", "--key", this.keyFile(name), ...args]);
    await running.reported("online");
    return running;
  }

  override async clear(): Promise<void> {
    await super.clear();
    await this.stage.clear();
  }

  override async stop(): Promise<void> {
    await this.clear();
    await this.shut();
    await this.stage.stop();
    await super.stop();
  }
}

/** Runs a command line with `--json`, which must fail in this way, and say so in one line. @returns what stderr held. */
export async function expectFailure(
  line: CommandLine,
  args: string[],
  exitCode: number,
  code: string,
  env = {},
): Promise<string> {
  const { code: ended, stdout, stderr } = await line.run(args, { env });
  expect([ended, stdout]).toEqual([exitCode, ""]);
  const reports = jsonLines(stderr).filter(({ event }) => event !== "waiting");
  const [{ retry, ...error }, ...more] = reports as [Record<string, unknown>];
  const texts = { message: expect.any(String), hint: expect.any(String) };
  expect([error, more]).toEqual([{ event: "error", ...texts, code, outcome: "refused" }, []]);
  expect(["never", "fix", "later"]).toContain(retry);
  return stderr;
}
