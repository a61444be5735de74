import { randomBytes } from "node:crypto";
import type { Logger } from "../logging.ts";
import { partitionKeys, windowKeys } from "./keys.ts";
import { type RedisLink, unavailable } from "./redis-link.ts";

/** What names a process window. Source: protocol, section 11. */
export interface WindowIdentity {
  readonly id: string;
  /** Epoch ms. */
  readonly startedAt: number;
  readonly deployId: string;
  /** Salt of visitor ids and address hashes; lives as long as the window, in memory and Redis only. */
  readonly salt: string;
}

/**
 * The process window that this service believes in. Every write names it; a service that is told of another one goes on
 * in the new one.
 */
export class ProcessWindow {
  readonly #link: RedisLink;
  readonly #partitions: number;
  readonly #deployId: string | null;
  readonly #logger: Logger;
  readonly #listeners: (() => Promise<void> | void)[] = [];
  #current: WindowIdentity | undefined;
  #adopting: Promise<WindowIdentity> | undefined;

  /** @param options.deployId opens a window when there is none; null (ops-reporting) only ever reads. */
  constructor(options: {
    readonly link: RedisLink;
    readonly partitions: number;
    readonly deployId: string | null;
    readonly logger: Logger;
  }) {
    this.#link = options.link;
    this.#partitions = options.partitions;
    this.#deployId = options.deployId;
    this.#logger = options.logger;
    options.link.onReady(async () => {
      await this.adopt().catch((error) => {
        if (this.#deployId !== null) throw error;
      });
    });
  }

  /** @throws RelayError `unavailable` before the first window is known. */
  get current(): WindowIdentity {
    if (this.#current === undefined) throw unavailable();
    return this.#current;
  }

  /** The window believed in, or else the one that is open; settled, its listeners done. @throws RelayError `unavailable`. */
  async known(): Promise<WindowIdentity> {
    return await (this.#adopting ?? this.#current ?? this.adopt());
  }

  /**
   * Runs as soon as another window than the last one is adopted, before anything is written to it: a listener may not
   * wait for `known` or `inWindow`. When one fails, the adoption does, and the next one runs them again.
   */
  onChange(listener: () => Promise<void> | void): void {
    this.#listeners.push(listener);
  }

  /**
   * Asks Redis which window is open, and opens one when there is none.
   * @throws RelayError `unavailable`.
   */
  adopt(): Promise<WindowIdentity> {
    this.#adopting ??= this.#adopt().finally(() => {
      this.#adopting = undefined;
    });
    return this.#adopting;
  }

  /**
   * Does `write` in the window believed in; when Redis names another one, goes on in that one.
   * @param write resolves null when the window is another one and nothing was done.
   */
  async inWindow<T>(write: (window: WindowIdentity) => Promise<T | null>): Promise<T> {
    for (let attempt = 0; attempt < 3; attempt += 1) {
      const done = await write(await this.known());
      if (done !== null) return done;
      await this.adopt();
    }
    throw unavailable();
  }

  async #adopt(): Promise<WindowIdentity> {
    const found = this.#deployId === null ? await this.#read() : await this.#open(this.#deployId);
    const last = this.#current;
    if (found.id === last?.id) return found;
    this.#current = found;
    this.#logger.info({ window: found.id, deploy: found.deployId }, "in a new window");
    try {
      await Promise.all(this.#listeners.map((listener) => listener()));
    } catch (error) {
      this.#current = last;
      throw error;
    }
    return found;
  }

  async #read(): Promise<WindowIdentity> {
    return identityOf(await this.#link.run("read_window", [partitionKeys.window(0), windowKeys.salt]));
  }

  async #open(deployId: string): Promise<WindowIdentity> {
    const salt = randomBytes(16).toString("base64url");
    const open = (p: number, id: string, startedAt: number, follow: boolean) =>
      this.#link.run(
        "open_window",
        [partitionKeys.window(p), windowKeys.salt],
        [id, startedAt, deployId, salt, follow ? 1 : 0],
      );
    const found = identityOf(await open(0, newWindowId(), 0, false));
    for (let p = 1; p < this.#partitions; p += 1) await open(p, found.id, found.startedAt, true);
    return found;
  }
}

/** A random id; a window's name tells nothing about it. */
export function newWindowId(): string {
  return `win_${randomBytes(12).toString("hex")}`;
}

function identityOf(reply: unknown): WindowIdentity {
  const [id, startedAt, deployId, salt] = reply as string[];
  if (id === undefined || startedAt === undefined || deployId === undefined || salt === undefined) throw unavailable();
  return { id, startedAt: Number(startedAt), deployId, salt };
}
