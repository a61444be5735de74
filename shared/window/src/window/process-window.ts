import type { Service } from "relay-runtime/lifecycle.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { controlKeys, PARTITION_TAGS, partitionKeys } from "../redis/keys.ts";
import { LinkDownError } from "../redis/link-state.ts";
import { everyPartition } from "../redis/partitions.ts";
import { type RedisCalls, unavailable } from "../redis/redis-calls.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";
import { type Generation, type PartitionKeys, WindowKeys } from "../redis/window-keys.ts";
import {
  beginWindow,
  type ControlRecord,
  endOpening,
  isRecord,
  LAYOUT,
  lastWindowOf,
  type Reached,
  raisePartitions,
  readControl,
  readPartitions,
} from "./window-records.ts";

/** Names and keys of a process window. Source: docs/redis.md#the-process-window. */
export interface WindowIdentity {
  readonly id: string;
  /** Unix ms. */
  readonly startedAt: number;
  readonly deployId: string;
  /** Salt of visitor ids and address hashes. It lives as long as the window, in memory and in Redis only. */
  readonly salt: string;
  readonly partitions: number;
  readonly keys: WindowKeys;
}

/**
 * Finds the open window, or opens the next one. An opening that another process began is finished. If there is no
 * window, or a part of it was lost, the next one is opened. There, the partitions that were not lost keep their state.
 * A partition that is out of reach is not lost: the window is open without it.
 * @param options.deployId of a window without a predecessor.
 * @throws LinkDownError `partitions` if the window has another number of partitions, `layout` if it has another
 * version's layout.
 * @throws ServiceError `unavailable`.
 */
export async function findOrOpenWindow(
  link: RedisCalls,
  { partitions, deployId }: { readonly partitions: number; readonly deployId: string },
): Promise<WindowIdentity> {
  for (let attempt = 0; attempt < REDIS_LIMITS.windowAttempts; attempt += 1) {
    const control = await readControl(link);
    const records = await readOrRaise(link, control, partitions);
    const last = lastWindowOf(control, records);
    if (last !== null) checkFitting(last, partitions);
    if (control !== null && isWhole(control, records)) {
      // Also if the window is already open: the write shows whether this service can write here.
      if (await endOpening(link, control)) return identityOf(control, records);
      continue;
    }
    await beginWindow(link, control, records, last ?? { partitions, deployId, since: null });
  }
  throw unavailable();
}

/**
 * Finds the open window and opens none.
 * @throws LinkDownError `partitions` or `layout`.
 * @throws ServiceError `unavailable`, also while no window is open.
 */
export async function findWindow(link: RedisCalls, partitions: number): Promise<WindowIdentity> {
  const control = await readControl(link);
  if (control === null) throw unavailable();
  const records = await readRecords(link, control, partitions);
  checkFitting(lastWindowOf(control, records) ?? control, partitions);
  if (control.state !== "open" || !isWhole(control, records)) throw unavailable();
  return identityOf(control, records);
}

/**
 * Joins two readings of one window that reached different partitions.
 * @returns `first` itself if `second` adds nothing.
 */
function joinReadings(first: WindowIdentity, second: WindowIdentity): WindowIdentity {
  const [known, found] = [first.keys.generations, second.keys.generations];
  if (!found.some((generation, p) => generation !== null && known[p] === null)) return first;
  const generations = known.map((generation, p) => generation ?? (found[p] as Generation));
  return { ...first, keys: new WindowKeys(first.startedAt, generations) };
}

/** A process whose number of partitions or layout differs from the control slot raises no partition. */
async function readOrRaise(link: RedisCalls, control: ControlRecord | null, partitions: number): Promise<Reached[]> {
  const isOurs = control?.partitions === partitions && control.layout === LAYOUT;
  if (isOurs && control.state === "opening") return await raisePartitions(link, control);
  return await readRecords(link, control, partitions);
}

/**
 * Must be asked after the control slot. Then a partition behind the control slot was lost, and is not one that is still
 * to be raised. If the control slot was lost, or has another number of partitions, any possible partition can tell the
 * number.
 */
async function readRecords(link: RedisCalls, control: ControlRecord | null, partitions: number): Promise<Reached[]> {
  return await readPartitions(link, control?.partitions === partitions ? partitions : PARTITION_TAGS.length);
}

/** @throws LinkDownError if this service would read and write other keys than the window's services. */
function checkFitting(last: Pick<ControlRecord, "partitions" | "layout">, partitions: number): void {
  if (last.layout !== LAYOUT) {
    throw new LinkDownError("layout", `the open window has layout ${last.layout}, that of this version is ${LAYOUT}`);
  }
  if (last.partitions === partitions) return;
  const text = `the open window has ${last.partitions} partitions, RELAY_PARTITIONS is ${partitions}`;
  throw new LinkDownError("partitions", text);
}

/** Whether no part of a window was lost: the salt exists, and each partition in reach is in the window. */
function isWhole({ id, state, salt }: ControlRecord, records: readonly Reached[]): boolean {
  return state !== "" && salt !== "" && records.every((record) => !isRecord(record) || record.id === id);
}

function identityOf(control: ControlRecord, records: readonly Reached[]): WindowIdentity {
  const { id, number, deployId, salt, partitions } = control;
  const generations = records.map((record) => (isRecord(record) ? record.generation : null));
  return { id, startedAt: number, deployId, salt, partitions, keys: new WindowKeys(number, generations) };
}

/**
 * The process window that this service works in. Every write names it. If another window is open, the write does
 * nothing. Then the service adopts the open window and writes again. It adopts no window with another number of
 * partitions, because it would look for agents in the wrong place. Its link goes down instead, and everything is
 * refused.
 */
export class ProcessWindow implements Service {
  /** Number of partitions. A window with another number is not adopted. */
  readonly partitions: number;
  readonly #link: RedisCalls;
  readonly #deployId: string | null;
  readonly #logger: Logger;
  readonly #listeners: (() => Promise<void> | void)[] = [];
  #current: WindowIdentity | undefined;
  #adopting: Promise<WindowIdentity> | undefined;
  /** Pending while listeners run for a window that was just adopted. */
  #entering: Promise<unknown> | undefined;
  #timer: NodeJS.Timeout | undefined;

  /** @param options.deployId opens a window if there is none. Null (ops-reporting) never opens one. */
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

  /** From now on the service notices another window, or a loss, even if it writes nothing. */
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
   * The last adopted window once its listeners are done, or else the open one. It does not wait while Redis is only
   * asked for a newer window, because a part out of reach makes that slow. Redis refuses writes to a replaced window.
   * @throws ServiceError `unavailable`.
   */
  async known(): Promise<WindowIdentity> {
    if (this.#current === undefined) return await this.adoptOpenWindow();
    await this.#entering?.catch(() => {});
    return this.current;
  }

  /**
   * Adopts the open window if it is another one, if a part was lost, or if a part is in reach again. A service
   * that seldom writes finds out this way.
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
   * Runs as soon as another window is adopted, before anything is written to it. So a listener may not wait for `known`
   * or `inWindow`. If a listener fails, the adoption fails, and the next adoption runs all listeners again.
   */
  onChange(listener: () => Promise<void> | void): void {
    this.#listeners.push(listener);
  }

  /**
   * Asks Redis for the open window. Opens one if there is none, or if a part of it was lost.
   * @throws ServiceError `unavailable`.
   */
  adoptOpenWindow(): Promise<WindowIdentity> {
    this.#adopting ??= this.#findAndEnter().finally(() => {
      this.#adopting = undefined;
    });
    return this.#adopting;
  }

  /**
   * Writes or reads in the known window. If another window is open, adopts it and tries again.
   * @param act resolves with null if another window is open and it did nothing.
   * @throws ServiceError `unavailable`, also if the window changes again and again.
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
   * Reads in one partition of the open window. Redis is asked for the window id after the read. If the id differs, it
   * reads again in the open window.
   * @param read sends its commands before its first await.
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
