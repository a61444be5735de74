import type { Service } from "relay-runtime/lifecycle.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { controlKeys, partitionKeys } from "../redis/keys.ts";
import { REDIS_LIMITS } from "../redis/limits.ts";
import { LinkDownError } from "../redis/link-down.ts";
import { everyPartition } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import { unavailable } from "../redis/unavailable.ts";
import type { PartitionKeys } from "../redis/window-keys.ts";
import { findOrOpenWindow, findWindow, joinReadings, type WindowIdentity } from "./window-identity.ts";

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
  /** Pending while the listeners do their work in a window that was adopted. */
  #entering: Promise<unknown> | undefined;
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
    options.link.onUsable(async () => {
      await this.adoptOpenWindow().catch((error) => {
        if (this.#deployId !== null) throw error;
      });
    });
    options.link.onMoved(() => void this.adoptIfChanged().catch(() => {}));
  }

  /** From here on another window, or a loss, is noticed without anything being written. */
  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.adoptIfChanged().catch(() => {}), REDIS_LIMITS.windowFollowMs);
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer);
  }

  get isKnown(): boolean {
    return this.#current !== undefined;
  }

  /** @throws ServiceError `unavailable` before the first window is known. */
  get current(): WindowIdentity {
    if (this.#current === undefined) throw unavailable();
    return this.#current;
  }

  /**
   * The window adopted last, its listeners done, or else the one that is open. Nobody waits while Redis is only asked whether there
   * is another one, which takes long while a part of it is out of reach: it refuses what is written to a window that was replaced.
   * @throws ServiceError `unavailable`.
   */
  async known(): Promise<WindowIdentity> {
    if (this.#current === undefined) return await this.adoptOpenWindow();
    await this.#entering?.catch(() => {});
    return this.current;
  }

  /**
   * Adopts the window that is open, where it is another one, a part of it was lost, or one that was out of reach answers: one
   * whose writes are few finds out.
   * @throws ServiceError `unavailable`.
   */
  async adoptIfChanged(): Promise<void> {
    const idOf = async (record: string) => await this.#link.command("HGET", record, "id").catch(() => undefined);
    const partitions = everyPartition(this.partitions).map((p) => idOf(partitionKeys.window(p)));
    const [control, ...ids] = await Promise.all([idOf(controlKeys.window), ...partitions]);
    const { id, keys } = this.#current ?? {};
    const isOther = [control, ...ids].some((found) => found !== undefined && found !== id);
    const isBack = ids.some((found, p) => found !== undefined && keys?.generations[p] === null);
    if (isOther || isBack) await this.adoptOpenWindow();
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
  adoptOpenWindow(): Promise<WindowIdentity> {
    this.#adopting ??= this.#findAndEnter().finally(() => {
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
    for (let attempt = 0; attempt < REDIS_LIMITS.windowAttempts; attempt += 1) {
      const done = await act(await this.known());
      if (done !== null) return done;
      await this.adoptOpenWindow();
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

  async #findAndEnter(): Promise<WindowIdentity> {
    const found = await this.#find();
    const last = this.#current;
    if (found.id === last?.id) {
      this.#current = joinReadings(last, found);
      return this.#current;
    }
    this.#current = found;
    this.#logger.info({ window: found.id, deploy: found.deployId }, "in a new window");
    this.#entering = Promise.all(this.#listeners.map(async (listener) => await listener()));
    try {
      await this.#entering;
    } catch (error) {
      this.#current = last;
      throw error;
    } finally {
      this.#entering = undefined;
    }
    return found;
  }

  async #find(): Promise<WindowIdentity> {
    const { partitions } = this;
    try {
      if (this.#deployId === null) return await findWindow(this.#link, partitions);
      return await findOrOpenWindow(this.#link, { partitions, deployId: this.#deployId });
    } catch (error) {
      if (!(error instanceof LinkDownError)) throw error;
      this.#current = undefined;
      this.#link.reconnect(error);
      throw unavailable(error);
    }
  }
}
