import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { redisProgram } from "./redis-program.mjs";

const START_TIMEOUT_MS = 10_000;
const POLL_MS = 5;
/** `sun_path` holds 104 bytes on macOS and 108 on Linux, its final zero included; Redis cuts longer paths silently. */
const SOCKET_PATH_BYTES = 103;
const FOLDER_PREFIX = "agent-relay-";
const SOCKET = "redis.sock";

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

/**
 * A private Redis for one process: a unix socket in a folder that only this user may enter, no TCP port, nothing on
 * disk. It is in a session of its own, so that Ctrl-C reaches the services and not Redis. Started again after `stop`, it is
 * empty and has the same `url`.
 */
export class EmbeddedRedis {
  #folder = "";
  #guardian: ChildProcess | undefined;
  #output = "";

  /** `unix:///…/redis.sock`, from the first `start` on. */
  get url(): string {
    return `unix://${join(this.#folder, SOCKET)}`;
  }

  /**
   * Resolves when Redis answers.
   * @throws {Error} when there is no suitable Redis on the PATH, or with the output of Redis when it does not start.
   */
  async start(): Promise<void> {
    if (this.#guardian !== undefined) return;
    const program = redisProgram();
    await this.#makeFolder();

    const command = [program, ...redisArguments(this.#folder)];
    const guardian = spawn("/bin/sh", ["-c", GUARDIAN, "redis-guardian", this.#folder, ...command], {
      detached: true,
      stdio: ["pipe", "pipe", "ignore"],
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
    if (this.#folder === "") this.#folder = await mkdtemp(join(socketRoot(tmpdir()), FOLDER_PREFIX));
    else await mkdir(this.#folder, { mode: 0o700 });
  }

  async #untilItAnswers(guardian: ChildProcess): Promise<void> {
    const deadline = Date.now() + START_TIMEOUT_MS;
    while (!(await answersPing(join(this.#folder, SOCKET)))) {
      if (hasEnded(guardian) || Date.now() > deadline) {
        await this.stop();
        throw new Error(`Redis did not start. Its output:\n${this.#output.trim() || "none"}`);
      }
      await delay(POLL_MS);
    }
  }
}

/** The folder for temporary files, or `/tmp` where a socket's path in it would be too long. */
export function socketRoot(temporary: string): string {
  const path = join(temporary, `${FOLDER_PREFIX}XXXXXX`, SOCKET);
  return Buffer.byteLength(path) <= SOCKET_PATH_BYTES ? temporary : "/tmp";
}

function redisArguments(folder: string): string[] {
  const settings: Record<string, string> = {
    port: "0",
    unixsocket: join(folder, SOCKET),
    unixsocketperm: "700",
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
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

function hasEnded(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

/** One PING on a connection of its own. */
async function answersPing(socketPath: string): Promise<boolean> {
  const socket = connect(socketPath);
  try {
    socket.write("PING\r\n");
    for await (const answer of socket) return String(answer).startsWith("+PONG");
    return false;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}
