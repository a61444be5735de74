import { REPORT_LIMITS } from "relay-protocol/wire/limits.ts";
import { countConnections } from "relay-window/channel/pod-channel.ts";
import { type Journey, JourneysCopy } from "relay-window/counters/journeys.ts";
import { readSnapshot, type WindowSnapshot } from "relay-window/counters/snapshot.ts";
import type { PresenceCounts, PresenceStore } from "relay-window/presence/presence.ts";
import { type GatewayKey, readGatewayKeys } from "relay-window/public-keys/gateway-keys.ts";
import { partitionKeys } from "relay-window/redis/keys.ts";
import { everyPartition } from "relay-window/redis/partitions.ts";
import type { RedisCalls } from "relay-window/redis/redis-calls.ts";
import { readTarget, type Target, type TargetQuery } from "relay-window/sessions/look-ups.ts";
import { SeenPromotions } from "relay-window/window/data-loss.ts";
import type { ProcessWindow, WindowIdentity } from "relay-window/window/process-window.ts";

/** What a report may be computed from besides the figures of the window, each read only for the reports that name it. */
export interface ReportParts {
  /** `missing` are the partitions that could not be counted. */
  readonly presence: PresenceCounts & { readonly missing?: readonly number[] };
  readonly journeys: readonly Journey[];
  readonly gatewayKeys: readonly GatewayKey[];
  /** Websockets of all pods. */
  readonly connections: number;
}
export type ReportPart = keyof ReportParts;

/**
 * What a report is computed from: the figures of the window, and the parts that the report names. A report that uses a
 * part which it does not name does not compile.
 */
export type ReportSource<Part extends ReportPart = never> = WindowSnapshot & Pick<ReportParts, Part>;

interface Figures {
  readonly snapshot: WindowSnapshot;
  /** Monotonic ms. */
  readonly receivedAt: number;
}

/**
 * Reads what reports are computed from. The figures and each part are read once for all reports of
 * REPORT_LIMITS.keptReadMs, so they can be that far apart in time. When another window is adopted, all that was read
 * before is dropped: no report shows its figures together with parts of the window before it.
 */
export class WindowReader {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  readonly #promotions: SeenPromotions;
  readonly #figures: SharedRead<Figures>;
  readonly #parts: { readonly [Part in ReportPart]: SharedRead<ReportParts[Part]> };
  readonly #targets: SharedReads<Target>;

  constructor(options: {
    readonly link: RedisCalls;
    readonly window: ProcessWindow;
    readonly presenceStore: PresenceStore;
    readonly offlineAfterMs: number;
    readonly proofFreshnessMs: number;
  }) {
    const { link, window, presenceStore } = options;
    this.#link = link;
    this.#window = window;
    this.#promotions = new SeenPromotions(link, window.partitions);
    const shared = <T>(read: () => Promise<T>) => new SharedRead(read, REPORT_LIMITS.keptReadMs);
    this.#figures = shared(async () => {
      const snapshot = await readSnapshot(link, window);
      return { snapshot, receivedAt: performance.now() };
    });
    const journeys = new JourneysCopy(link, window);
    this.#parts = {
      presence: shared(() => presenceStore.count()),
      journeys: shared(() => journeys.read()),
      gatewayKeys: shared(() => readGatewayKeys(link)),
      connections: shared(() => countConnections(link)),
    };
    this.#targets = new SharedReads((key) => readTarget(link, window, queryOf(key), options), {
      keptMs: REPORT_LIMITS.keptReadMs,
      most: REPORT_LIMITS.keptTargets,
    });
    window.onChange(() => {
      for (const read of [this.#figures, ...Object.values(this.#parts), this.#targets]) read.forget();
    });
  }

  /**
   * The figures, at most REPORT_LIMITS.keptReadMs old, with the present time by the clock of Redis, and the parts asked for.
   * @throws ServiceError `unavailable`: no Redis, no window yet, or one that this service cannot read.
   */
  async read<Part extends ReportPart>(...names: readonly Part[]): Promise<ReportSource<Part>> {
    return await this.#inOneWindow((window) => this.#readIn(window, names));
  }

  /**
   * One target, at most REPORT_LIMITS.keptReadMs old, beside the same figures and parts, and of the same window. The first
   * read for a session is made after its request was acknowledged, and so has its proof.
   * @throws ServiceError `unavailable`.
   */
  async readWithTarget<Part extends ReportPart>(
    query: TargetQuery,
    ...names: readonly Part[]
  ): Promise<{ readonly source: ReportSource<Part>; readonly target: Target }> {
    return await this.#inOneWindow(async (window) => {
      const [source, target] = await Promise.all([this.#readIn(window, names), this.#targets.get(keyOf(query))]);
      return source === null ? null : { source, target };
    });
  }

  /** Anything that is read anew may find, and adopt, another window than the one of what was kept. */
  async #inOneWindow<T>(read: (window: WindowIdentity) => Promise<T | null>): Promise<T> {
    return await this.#window.inWindow(async (window) => {
      const found = await read(window);
      return this.#window.current.id === window.id ? found : null;
    });
  }

  /** Null when the figures are of another window. One of more partitions than are read here is never adopted, nor shown. */
  async #readIn<Part extends ReportPart>(
    { id, keys }: WindowIdentity,
    names: readonly Part[],
  ): Promise<ReportSource<Part> | null> {
    const [{ snapshot, receivedAt }, parts] = await Promise.all([this.#readFigures(), this.#readParts(names)]);
    if (snapshot.windowId !== id) return null;
    const now = snapshot.now + Math.floor(performance.now() - receivedAt);
    // What was noted counts before what was seen here: all processes report the same of it.
    const lostSince = new Map([...this.#promotions.in(keys, now), ...snapshot.lostSince]);
    return { ...snapshot, ...parts, now, lostSince };
  }

  /** Read anew when a partition that they have was lost since: a report would call itself complete while one is out of reach. */
  async #readFigures(): Promise<Figures> {
    const kept = await this.#figures.get();
    if (!this.#hasLostSince(kept.snapshot)) return kept;
    this.#figures.forget();
    return await this.#figures.get();
  }

  #hasLostSince({ missing, partitions }: WindowSnapshot): boolean {
    const isReached = (p: number) => this.#link.serverOf(partitionKeys.window(p))?.up ?? false;
    return this.#link.up && everyPartition(partitions).some((p) => !missing.includes(p) && !isReached(p));
  }

  async #readParts<Part extends ReportPart>(names: readonly Part[]): Promise<Pick<ReportParts, Part>> {
    const entries = names.map(async (name) => [name, await this.#parts[name].get()] as const);
    return Object.fromEntries(await Promise.all(entries)) as Pick<ReportParts, Part>;
  }
}

/** Neither an agent id nor a session id holds a space. */
function keyOf({ agent, sessionId }: TargetQuery): string {
  return `${agent} ${sessionId ?? ""}`;
}

function queryOf(key: string): TargetQuery {
  const [agent, sessionId] = key.split(" ") as [string, string];
  return { agent, sessionId: sessionId === "" ? null : sessionId };
}

/**
 * A read that is shared: callers that come while it is under way wait for it, and later ones get the same result until
 * `keptMs` after it was sent. Its age counts from then, since what was acknowledged later may be missing from it. A failure
 * is passed to the callers that wait for it and is not kept.
 */
export class SharedRead<T> {
  readonly #read: () => Promise<T>;
  readonly #keptMs: number;
  #last: { readonly sentAt: number; readonly result: Promise<T> } | undefined;

  constructor(read: () => Promise<T>, keptMs: number) {
    this.#read = read;
    this.#keptMs = keptMs;
  }

  get(): Promise<T> {
    const now = performance.now();
    if (this.#last !== undefined && now - this.#last.sentAt < this.#keptMs) return this.#last.result;
    const last = { sentAt: now, result: this.#read() };
    this.#last = last;
    last.result.catch(() => {
      if (this.#last === last) this.#last = undefined;
    });
    return last.result;
  }

  /** The next `get` sends a read of its own. */
  forget(): void {
    this.#last = undefined;
  }
}

/** A shared read of each key, kept for the `most` keys that were first asked for last: who asks for ever new ones keeps no more. */
export class SharedReads<T> {
  readonly #read: (key: string) => Promise<T>;
  readonly #keptMs: number;
  readonly #most: number;
  readonly #reads = new Map<string, SharedRead<T>>();

  constructor(read: (key: string) => Promise<T>, options: { readonly keptMs: number; readonly most: number }) {
    this.#read = read;
    this.#keptMs = options.keptMs;
    this.#most = options.most;
  }

  get size(): number {
    return this.#reads.size;
  }

  get(key: string): Promise<T> {
    const read = this.#reads.get(key) ?? this.#add(key);
    return read.get();
  }

  forget(): void {
    this.#reads.clear();
  }

  #add(key: string): SharedRead<T> {
    const read = new SharedRead(() => this.#read(key), this.#keptMs);
    this.#reads.set(key, read);
    if (this.#reads.size > this.#most) this.#reads.delete(this.#reads.keys().next().value as string);
    return read;
  }
}
