import { randomBytes } from "node:crypto";
import type { Logger } from "runtime/logging.ts";
import { controlKeys, partitionKeys } from "./redis/keys.ts";
import { LinkDownError } from "./redis/link-down.ts";
import type { RedisLink } from "./redis/redis-link.ts";
import { unavailable } from "./unavailable.ts";

/** How often a window that was replaced meanwhile is followed by the next one, before that is refused. */
const ATTEMPTS = 3;

/** What names a process window. Source: docs/redis.md#the-process-window. */
export interface WindowIdentity {
  readonly id: string;
  /** Unix ms. */
  readonly startedAt: number;
  readonly deployId: string;
  /** Salt of visitor ids and address hashes; lives as long as the window, in memory and Redis only. */
  readonly salt: string;
  readonly partitions: number;
}

/**
 * The process window that this service works in. Every write names it; when the open window is another one, the write does
 * nothing, the service adopts the open one and writes again. A window with another number of partitions is not adopted:
 * the service would look for agents where they are not, so its link goes down and everything is refused.
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

  /** @throws ServiceError `unavailable` before the first window is known. */
  get current(): WindowIdentity {
    if (this.#current === undefined) throw unavailable();
    return this.#current;
  }

  /** The window adopted last, its listeners done, or else the one that is open. @throws ServiceError `unavailable`. */
  async known(): Promise<WindowIdentity> {
    return await (this.#adopting ?? this.#current ?? this.adopt());
  }

  /** Adopts the window that is open, where it is another one: one whose writes are few finds out. @throws ServiceError `unavailable`. */
  async follow(): Promise<void> {
    const id = await this.#link.command("HGET", controlKeys.window, "id");
    if (id !== this.#current?.id) await this.adopt();
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
   * @throws ServiceError `unavailable`.
   */
  adopt(): Promise<WindowIdentity> {
    this.#adopting ??= this.#adopt().finally(() => {
      this.#adopting = undefined;
    });
    return this.#adopting;
  }

  /**
   * Writes or reads in the known window; when another one is open, adopts it and does so again.
   * @param act resolves null when another window is open and nothing was done.
   * @throws ServiceError `unavailable`, also when the window changes again and again.
   */
  async inWindow<T>(act: (window: WindowIdentity) => Promise<T | null>): Promise<T> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const done = await act(await this.known());
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
    return this.#checked(await this.#link.run("read_window", [controlKeys.window, controlKeys.salt]));
  }

  async #open(deployId: string): Promise<WindowIdentity> {
    const salt = randomBytes(16).toString("base64url");
    const open = async (keys: readonly string[], id: string, startedAt: number) =>
      (await this.#link.run("open_window", keys, [id, startedAt, deployId, this.#partitions, salt])) as string[];
    const partitions = Array.from({ length: this.#partitions }, (_, p) => [partitionKeys.window(p)]);
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const found = this.#checked(await open([controlKeys.window, controlKeys.salt], newWindowId(), 0));
      const opened = await Promise.all(partitions.map((keys) => open(keys, found.id, found.startedAt)));
      // Another one was opened in between: the control slot has it by now.
      if (opened.every(([id]) => id === found.id)) return found;
    }
    throw unavailable();
  }

  /** @throws ServiceError `unavailable` when no window is open, or one with another number of partitions. */
  #checked(reply: unknown): WindowIdentity {
    const [id, startedAt, deployId, partitions, salt] = reply as string[];
    if (id === undefined || startedAt === undefined || deployId === undefined || salt === undefined) {
      throw unavailable();
    }
    const found = { id, startedAt: Number(startedAt), deployId, salt, partitions: Number(partitions) };
    if (found.partitions === this.#partitions) return found;
    this.#current = undefined;
    const text = `the open window has ${found.partitions} partitions, RELAY_PARTITIONS is ${this.#partitions}`;
    const mismatch = new LinkDownError("partitions", text);
    this.#link.reconnect(mismatch);
    throw unavailable(mismatch);
  }
}

/** A random id; a window's name tells nothing about it. */
export function newWindowId(): string {
  return `win_${randomBytes(12).toString("hex")}`;
}
