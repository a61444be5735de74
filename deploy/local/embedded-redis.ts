import { tmpdir } from "node:os";
import { join } from "node:path";
import { answersPing } from "../redis/redis-words.ts";
import { FOLDER_PREFIX, RedisProcess, redisArguments } from "./redis-process.ts";
import { redisProgram } from "./redis-program.mjs";

/** `sun_path` holds 104 bytes on macOS and 108 on Linux, its final zero included; Redis cuts longer paths silently. */
const SOCKET_PATH_BYTES = 103;
const SOCKET = "redis.sock";

/**
 * A private Redis for one process: a unix socket in a folder that only this user may enter, no TCP port, nothing on
 * disk. Started again after `stop`, it is empty and has the same `url`.
 */
export class EmbeddedRedis {
  readonly #process = new RedisProcess(
    {
      command: (folder) => [redisProgram(), ...socketArguments(folder)],
      answers: (folder) => answersPing({ path: join(folder, SOCKET) }),
    },
    socketRoot(tmpdir()),
  );

  /** `unix:///…/redis.sock`, from the first `start` on. */
  get url(): string {
    return `unix://${join(this.#process.folder, SOCKET)}`;
  }

  /**
   * Resolves when Redis answers.
   * @throws {Error} when there is no suitable Redis on the PATH, or with the output of Redis when it does not start.
   */
  async start(): Promise<void> {
    await this.#process.start();
  }

  /** Resolves when Redis has ended and its folder is gone. May be called at any time, and again. */
  async stop(): Promise<void> {
    await this.#process.stop();
  }
}

/** The folder for temporary files, or `/tmp` where a socket's path in it would be too long. */
export function socketRoot(temporary: string): string {
  const path = join(temporary, `${FOLDER_PREFIX}XXXXXX`, SOCKET);
  return Buffer.byteLength(path) <= SOCKET_PATH_BYTES ? temporary : "/tmp";
}

function socketArguments(folder: string): string[] {
  return redisArguments(folder, { port: "0", unixsocket: join(folder, SOCKET), unixsocketperm: "700" });
}
