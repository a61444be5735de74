import { randomBytes } from "node:crypto";
import { categoryOf, type FeedbackRequest, sentimentOf } from "relay-protocol/contract/requests.ts";
import { type SurfaceId, surfaceLabelOf } from "relay-protocol/contract/surfaces.ts";
import { WINDOW_LIMITS } from "relay-protocol/wire/limits.ts";
import { anonymousId } from "relay-runtime/http/client-address.ts";
import type { OnAnswer } from "relay-runtime/http/router.ts";
import type { Service } from "relay-runtime/lifecycle.ts";
import { controlKeys } from "../redis/keys.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";
import { REDIS_LIMITS } from "../redis/redis-limits.ts";
import type { WholeKeys } from "../redis/window-keys.ts";
import type { ProcessWindow } from "../window/process-window.ts";
import { GatheredJourneys } from "./journeys.ts";

/** Counters that a process adds up before it writes them. Source: docs/protocol.md#counters. */
type TrafficCounter = "surface_views" | "onboarding_checks" | "self_test_passed";

/**
 * High-volume counters, added up in the process and written every 100 ms and at stop. A write without an answer is sent
 * again under the same number, so nothing is counted twice. Counts that cannot be written are summed up, and so
 * bounded, for REDIS_LIMITS.countsHeldMs. After that they are lost, and the loss is counted.
 * Source: docs/redis.md#counts.
 */
export class Counters implements Service {
  readonly #link: RedisCalls;
  readonly #window: ProcessWindow;
  readonly #process = randomBytes(6).toString("hex");
  /** Counts since the last write. Undefined if there are none. */
  #gathered: Gathered | undefined;
  #unwritten: Flush | undefined;
  #flushes = 0;
  #lost = 0;
  #timer: NodeJS.Timeout | undefined;
  #running: Promise<void> | undefined;

  constructor(options: { readonly link: RedisCalls; readonly window: ProcessWindow }) {
    this.#link = options.link;
    this.#window = options.window;
    // Counts of the last window do not belong to the new one.
    options.window.onChange(() => {
      this.#gathered = undefined;
      this.#unwritten = undefined;
    });
  }

  async start(): Promise<void> {
    this.#timer = setInterval(() => void this.flush(), REDIS_LIMITS.counterFlushMs);
  }

  /** Writes the remaining counts. */
  async stop(): Promise<void> {
    clearInterval(this.#timer);
    await this.#running;
    await this.flush();
  }

  /** Number of counts that could not be written in time. */
  get lost(): number {
    return this.#lost;
  }

  count(name: TrafficCounter): void {
    increment(this.#gathering.traffic, name);
  }

  /** Counts a view of a surface, which is also an action. @param visitor as in `act`. */
  view(surface: SurfaceId, visitor: string): void {
    this.count("surface_views");
    increment(this.#gathering.surfaces, surface);
    this.act(surface, visitor);
  }

  /** Adds an action to the visitor's journey. @param visitor keyed hash (`anonymousId`). */
  act(surface: SurfaceId, visitor: string): void {
    const { journeys, visitors } = this.#gathering;
    journeys.add(visitor, surface, performance.now());
    if (visitors.size < REDIS_LIMITS.flushVisitors) visitors.add(visitor);
  }

  /** Resolves when all gathered counts are written, or when Redis did not answer. */
  flush(): Promise<void> {
    this.#running ??= this.#flush()
      .catch(() => {})
      .finally(() => {
        this.#running = undefined;
      });
    return this.#running;
  }

  async #flush(): Promise<void> {
    this.#dropOverdue();
    if (this.#unwritten !== undefined) await this.#write(this.#unwritten);
    if (this.#gathered === undefined) return;
    const { id, keys } = await this.#window.known();
    const gathered = this.#gathered;
    // Another window may have begun, without counts yet.
    if (gathered === undefined) return;
    this.#flushes += 1;
    this.#unwritten = { number: this.#flushes, windowId: id, keys: keys.whole, gathered };
    this.#gathered = undefined;
    await this.#write(this.#unwritten);
  }

  get #gathering(): Gathered {
    this.#gathered ??= new Gathered();
    return this.#gathered;
  }

  #dropOverdue(): void {
    if (this.#unwritten?.gathered.isOverdue) {
      this.#lost += this.#unwritten.gathered.counted;
      this.#unwritten = undefined;
    }
    if (this.#gathered?.isOverdue) {
      this.#lost += this.#gathered.counted;
      this.#gathered = undefined;
    }
  }

  /** Adopting another window drops the flush. */
  async #write(flush: Flush): Promise<void> {
    const { number, windowId, keys: names, gathered } = flush;
    const keys = [
      controlKeys.window,
      names.flushes,
      names.traffic,
      names.surfaces,
      names.visitors,
      names.journeys,
      names.journeysSeen,
      names.journeyVersions,
      names.lastJourneyVersion,
    ];
    const reply = await this.#link.run("flush_counters", keys, [windowId, this.#process, number, ...gathered.args()]);
    if (reply === "window") await this.#window.adoptOpenWindow();
    else if (this.#unwritten === flush) this.#unwritten = undefined;
  }
}

/** Counts on their way to Redis, with the number of the write. */
interface Flush {
  readonly number: number;
  readonly windowId: string;
  readonly keys: WholeKeys;
  readonly gathered: Gathered;
}

class Gathered {
  readonly traffic = new Map<string, number>();
  readonly surfaces = new Map<string, number>();
  readonly visitors = new Set<string>();
  readonly journeys = new GatheredJourneys();
  /** Monotonic ms: when the first count was made. */
  readonly #since = performance.now();

  /** True if the counts were held too long to be written. */
  get isOverdue(): boolean {
    return performance.now() - this.#since > REDIS_LIMITS.countsHeldMs;
  }

  /** Sum of the traffic counts. */
  get counted(): number {
    return [...this.traffic.values()].reduce((sum, count) => sum + count, 0);
  }

  args(): (string | number)[] {
    const { traffic, surfaces, visitors, journeys } = this;
    const { journeys: mostJourneys, actionsPerJourney } = WINDOW_LIMITS;
    return [
      ...[traffic.size, surfaces.size, visitors.size, mostJourneys, actionsPerJourney],
      ...[...traffic, ...surfaces].flat(),
      ...visitors,
      ...journeys.args(performance.now()),
    ];
  }
}

function increment(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}

/**
 * Counts each GET, check-online included, that a traffic surface answered with 200. Adds it, and each successful POST,
 * to the visitor's journey. Only a hash of the visitor is kept, keyed by the window's salt. Without a window nothing is
 * counted. Source: docs/protocol.md#counters.
 */
export function countTraffic(counters: Counters, window: ProcessWindow): OnAnswer {
  return (surfaceId, surface, ctx) => {
    if (ctx.method !== surface.method || ctx.status !== surface.status) return;
    if (ctx.method === "GET" && !surface.traffic) return;
    const { ip } = ctx;
    const userAgent = ctx.get("User-Agent");
    const count = ({ salt }: { salt: string }) => {
      const visitor = anonymousId(salt, "visitor", ip, userAgent);
      if (surface.traffic) counters.view(surfaceId, visitor);
      else counters.act(surfaceId, visitor);
      if (surfaceId === "checkOnline") counters.count("onboarding_checks");
    };
    window.known().then(count, () => {});
  };
}

/**
 * Counts one feedback by its normalised labels. Its text goes no further, only the fact that it has one.
 * @throws ServiceError `unavailable`.
 */
export async function addFeedback(link: RedisCalls, window: ProcessWindow, feedback: FeedbackRequest): Promise<void> {
  const counts = [
    "total",
    `surface:${surfaceLabelOf(feedback.surface)}`,
    `sentiment:${sentimentOf(feedback.sentiment)}`,
    `category:${categoryOf(feedback.category)}`,
    ...(feedback.message === undefined || feedback.message === "" ? [] : ["message_provided"]),
  ];
  await window.inWindow(async ({ id, keys }) => {
    const names = [controlKeys.window, keys.whole.feedback];
    const [outcome] = await link.runByDeadline("add_feedback", names, [id, ...counts]);
    return outcome === "window" ? null : true;
  });
}
