import { readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryFolder } from "../../../test/support/temporary-folder.ts";
import { type Environment, Running, setHome } from "./running.ts";

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
