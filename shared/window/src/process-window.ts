import type { Service } from "runtime/lifecycle.ts";
import type { Logger } from "runtime/logging.ts";
import { controlKeys, partitionKeys } from "./redis/keys.ts";
import { REDIS_LIMITS } from "./redis/limits.ts";
import { LinkDownError } from "./redis/link-down.ts";
import type { RedisCalls } from "./redis/redis-calls.ts";
import type { PartitionKeys } from "./redis/window-keys.ts";
import { unavailable } from "./unavailable.ts";
import { readWindow, settleWindow, type WindowIdentity } from "./window-identity.ts";

/** How often a window that was replaced meanwhile is followed by the next one, before that is refused. */
const ATTEMPTS = 3;

/**
 * The process window that this service works in. Every write names it; when the open window is another one, the write does
 * nothing, the service adopts the open one and writes again. A window with another number of partitions is not adopted:
 * the service would look for agents where they are not, so its link goes down and everything is refused.
 */
export class ProcessWindow implements Service {
  /** How many the window has, or it is not adopted. */
  readonly partitions: number;
  readonly #link: RedisCalls;
  readonly #deployId: string | null;
  readonly #logger: Logger;
  readonly #listeners: (() => Promise<void> | void)[] = [];
  #current: WindowIdentity | undefined;
  #adopting: Promise<WindowIdentity> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param options.deployId opens a window when there is none; null (ops-reporting) only ever reads. */
  constructor(options: {
    readonly link: RedisCalls;
    readonly partitions: number;
    readonly deployId: string | null;
    readonly logger: Logger;
  }) {
    this.#link = options.link;
    this.partitions = options.partitions;
    this.#deployId = options.deployId;
    this.#logger = options.logger;
    options.link.onReady(async () => {
      await this.adopt().catch((error) => {
        if (this.#deployId !== null) throw error;
      });
    });
  }

  /** From here on another window, or a loss, is noticed without anything being written. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.follow().catch(() => {}), REDIS_LIMITS.windowFollowMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
  }

  /** @throws ServiceError `unavailable` before the first window is known. */
  get current(): WindowIdentity {
    if (this.#current === undefined) throw unavailable();
    return this.#current;
  }

  /**
   * The window adopted last, its listeners done, or else the one that is open. Where the adoption of another one fails, as
   * while a partition is lost, the others go on in the last: Redis refuses what is written to a window that was replaced.
   * @throws ServiceError `unavailable`.
   */
  async known(): Promise<WindowIdentity> {
    if (this.#adopting === undefined) return this.#current ?? (await this.adopt());
    return await this.#adopting.catch((error) => {
      if (this.#current === undefined) throw error;
      return this.#current;
    });
  }

  /**
   * Adopts the window that is open, where it is another one or a part of it was lost: one whose writes are few finds out.
   * @throws ServiceError `unavailable`.
   */
  async follow(): Promise<void> {
    const partitions = Array.from({ length: this.partitions }, (_, p) => partitionKeys.window(p));
    const records = [controlKeys.window, ...partitions];
    const ids = await Promise.all(records.map((record) => this.#link.command("HGET", record, "id")));
    if (ids.some((id) => id !== this.#current?.id)) await this.adopt();
  }

  /**
   * Runs as soon as another window than the last one is adopted, before anything is written to it: a listener may not
   * wait for `known` or `inWindow`. When one fails, the adoption does, and the next one runs them again.
   */
  onChange(listener: () => Promise<void> | void): void {
    this.#listeners.push(listener);
  }

  /**
   * Asks Redis which window is open, and opens one when there is none, or a part of it was lost.
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

  /**
   * Reads in one partition of the window that is open, and again where another one was open by then: Redis is asked for its id
   * behind what is read. @param read sends what it reads before it first waits.
   * @throws ServiceError `unavailable`.
   */
  async read<T>(partition: number, read: (keys: PartitionKeys) => Promise<T>): Promise<T> {
    const { found } = await this.inWindow(async (window) => {
      const record = partitionKeys.window(partition);
      const [found, id] = await Promise.all([
        read(window.keys.partition(partition)),
        this.#link.command("HGET", record, "id"),
      ]);
      return id === window.id ? { found } : null;
    });
    return found;
  }

  async #adopt(): Promise<WindowIdentity> {
    const found = await this.#find();
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

  async #find(): Promise<WindowIdentity> {
    const { partitions } = this;
    try {
      if (this.#deployId === null) return await readWindow(this.#link, partitions);
      return await settleWindow(this.#link, { partitions, deployId: this.#deployId });
    } catch (error) {
      if (!(error instanceof LinkDownError)) throw error;
      this.#current = undefined;
      this.#link.reconnect(error);
      throw unavailable(error);
    }
  }
}
