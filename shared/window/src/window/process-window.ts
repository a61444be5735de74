import type { Service } from "relay-runtime/lifecycle.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { controlKeys, PARTITION_TAGS, partitionKeys } from "../redis/keys.ts";
import { REDIS_LIMITS } from "../redis/limits.ts";
import { LinkDownError } from "../redis/link-state.ts";
import { everyPartition } from "../redis/partitions.ts";
import { type RedisCalls, unavailable } from "../redis/redis-calls.ts";
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
} from "./records.ts";

/** What names a process window. Source: docs/redis.md#the-process-window. */
export interface WindowIdentity {
  readonly id: string;
  /** Unix ms. */
  readonly startedAt: number;
  readonly deployId: string;
  /** Salt of visitor ids and address hashes; lives as long as the window, in memory and Redis only. */
  readonly salt: string;
  readonly partitions: number;
  readonly keys: WindowKeys;
}

/**
 * The window that is open. One that somebody began to open is opened to the end; where there is none, or a part of one was
 * lost, the next is opened, in which the partitions that are there keep their state. One that is out of reach is not lost: the
 * window is open without it.
 * @param options.deployId of a window that follows none.
 * @throws LinkDownError `partitions` when the window has another number of them, `layout` when it is another version's; ServiceError
 * `unavailable`.
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
      // Where it is open already, too: whether this service can write here is part of the answer.
      if (await endOpening(link, control)) return identityOf(control, records);
      continue;
    }
    await beginWindow(link, control, records, last ?? { partitions, deployId, since: null });
  }
  throw unavailable();
}

/**
 * The same of who opens none.
 * @throws LinkDownError `partitions`, `layout`; ServiceError `unavailable`, also while none is open.
 */
export async function findWindow(link: RedisCalls, partitions: number): Promise<WindowIdentity> {
  const control = await readControl(link);
  if (control === null) throw unavailable();
  const records = await readRecords(link, control, partitions);
  checkFitting(lastWindowOf(control, records) ?? control, partitions);
  if (control.state !== "open" || !isWhole(control, records)) throw unavailable();
  return identityOf(control, records);
}

/** One window, of which two readings may have reached different partitions. The first of them where the second adds nothing. */
export function joinReadings(first: WindowIdentity, second: WindowIdentity): WindowIdentity {
  const [known, found] = [first.keys.generations, second.keys.generations];
  if (!found.some((generation, p) => generation !== null && known[p] === null)) return first;
  const generations = known.map((generation, p) => generation ?? (found[p] as Generation));
  return { ...first, keys: new WindowKeys(first.startedAt, generations) };
}

/** Who counts another number of partitions than the control slot, or has another layout, raises none. */
async function readOrRaise(link: RedisCalls, control: ControlRecord | null, partitions: number): Promise<Reached[]> {
  const isOurs = control?.partitions === partitions && control.layout === LAYOUT;
  if (isOurs && control.state === "opening") return await raisePartitions(link, control);
  return await readRecords(link, control, partitions);
}

/**
 * To be asked after the control slot: a partition that is behind it then was lost, and is not one that is still to be raised.
 * Where the control slot was lost, or says another number, any partition that there may be can say how many there are.
 */
async function readRecords(link: RedisCalls, control: ControlRecord | null, partitions: number): Promise<Reached[]> {
  return await readPartitions(link, control?.partitions === partitions ? partitions : PARTITION_TAGS.length);
}

/** @throws LinkDownError where this service would read and write what others do not. */
function checkFitting(last: Pick<ControlRecord, "partitions" | "layout">, partitions: number): void {
  if (last.layout !== LAYOUT) {
    throw new LinkDownError("layout", `the open window has layout ${last.layout}, that of this version is ${LAYOUT}`);
  }
  if (last.partitions === partitions) return;
  const text = `the open window has ${last.partitions} partitions, RELAY_PARTITIONS is ${partitions}`;
  throw new LinkDownError("partitions", text);
}

/** Whether nothing of a window was lost: the salt is there, and each partition that is in reach is in it. */
function isWhole({ id, state, salt }: ControlRecord, records: readonly Reached[]): boolean {
  return state !== "" && salt !== "" && records.every((record) => !isRecord(record) || record.id === id);
}

function identityOf(control: ControlRecord, records: readonly Reached[]): WindowIdentity {
  const { id, number, deployId, salt, partitions } = control;
  const generations = records.map((record) => (isRecord(record) ? record.generation : null));
  return { id, startedAt: number, deployId, salt, partitions, keys: new WindowKeys(number, generations) };
}

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
