import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";

const START_TIMEOUT_MS = 10_000;
const POLL_MS = 5;
export const FOLDER_PREFIX = "agent-relay-";

/**
 * Runs Redis while its own stdin is open. The pipe closes when the parent closes it and when the parent dies, even by
 * SIGKILL, so that neither Redis nor its folder outlives the parent. When Redis ends, it removes the folder and ends.
 */
const GUARDIAN = `
trap '' HUP INT TERM
folder=$1; shift
"$@" </dev/null 2>&1 &
redis=$!
exec 3<&0
{ while read -r _; do :; done <&3; kill -KILL $redis; } >/dev/null 2>&1 &
watcher=$!
wait $redis
kill -KILL $watcher
rm -rf "$folder"
`;

/** How one Redis is run. */
export interface RedisProgram {
  /** @param folder that only this user may enter, and that ends with Redis. */
  readonly command: (folder: string) => readonly string[] | Promise<readonly string[]>;
  /** Whether it takes commands by now. */
  readonly answers: (folder: string) => Promise<boolean>;
  readonly env?: NodeJS.ProcessEnv;
}

/**
 * One Redis server that ends with this process, in a session of its own, so that Ctrl-C reaches the services and not Redis.
 * Started again after `stop`, it is empty and has the same folder.
 */
export class RedisProcess {
  readonly #program: RedisProgram;
  readonly #root: string;
  #folder = "";
  #guardian: ChildProcess | undefined;
  #output = "";

  /** @param root the folder in which it makes its own. */
  constructor(program: RedisProgram, root: string) {
    this.#program = program;
    this.#root = root;
  }

  /** From the first `start` on. */
  get folder(): string {
    return this.#folder;
  }

  /**
   * Resolves when Redis answers.
   * @throws {Error} with the output of Redis when it does not start.
   */
  async start(): Promise<void> {
    if (this.#guardian !== undefined) return;
    await this.#makeFolder();
    const command = await this.#program.command(this.#folder);
    const guardian = spawn("/bin/sh", ["-c", GUARDIAN, "redis-guardian", this.#folder, ...command], {
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
      env: this.#program.env,
    });
    this.#guardian = guardian;
    this.#output = "";
    guardian.stdout.on("data", (chunk) => {
      this.#output = `${this.#output}${chunk}`.slice(-4096);
    });
    await this.#untilItAnswers(guardian);
  }

  /** Resolves when Redis has ended and its folder is gone. May be called at any time, and again. */
  async stop(): Promise<void> {
    const guardian = this.#guardian;
    if (guardian === undefined) return;
    guardian.stdin?.end();
    if (!hasEnded(guardian)) await once(guardian, "close");
    if (this.#guardian === guardian) this.#guardian = undefined;
  }

  async #makeFolder(): Promise<void> {
    if (this.#folder === "") this.#folder = await mkdtemp(join(this.#root, FOLDER_PREFIX));
    else await mkdir(this.#folder, { mode: 0o700 });
  }

  async #untilItAnswers(guardian: ChildProcess): Promise<void> {
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (!(await this.#program.answers(this.#folder))) {
      if (hasEnded(guardian) || Date.now() > deadline) {
        await this.stop();
        throw new Error(`Redis did not start. Its output:\n${this.#output.trim() || "none"}`);
      }
      await delay(POLL_MS);
    }
  }
}

/** Settings of a Redis of the relay's: nothing on disk, and no log that would hold pieces of envelopes. */
export function redisArguments(folder: string, settings: Readonly<Record<string, string>>): string[] {
  const all: Record<string, string> = {
    ...settings,
    dir: folder,
    pidfile: join(folder, "redis.pid"),
    save: "",
    appendonly: "no",
    "maxmemory-policy": "noeviction",
    loglevel: "warning",
    // Both logs would hold arguments of scripts, and so parts of envelopes.
    "slowlog-log-slower-than": "-1",
    "crash-log-enabled": "no",
  };
  return Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}
