import type { Service } from "relay-runtime/lifecycle.ts";
import type { Logger } from "relay-runtime/logging.ts";
import { outOfReach } from "../redis/partitions.ts";
import type { RedisCalls } from "../redis/redis-calls.ts";

/** Between two looks; after a line it is longer: what comes and goes does not fill the log. */
const LOOK_MS = 1000;
const LOOK_AFTER_LINE_MS = 5000;

/**
 * Tells the log which partitions of a cluster a service's calls do not reach, and when they are back: one line for all that
 * changed. Nothing is asked of Redis: its link says it. With one partition the lines of the link say the same.
 */
export class ReachLog implements Service {
  readonly #link: RedisCalls;
  readonly #partitions: number;
  readonly #logger: Logger;
  /** Out of reach, as it was told last. */
  #told: readonly number[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(options: { readonly link: RedisCalls; readonly partitions: number; readonly logger: Logger }) {
    this.#link = options.link;
    this.#partitions = options.partitions;
    this.#logger = options.logger;
  }

  async start(): Promise<void> {
    if (this.#partitions > 1) this.#look();
  }

  async stop(): Promise<void> {
    clearTimeout(this.#timer);
  }

  #look(): void {
    const missing = outOfReach(this.#link, this.#partitions);
    const hasChanged = missing.join() !== this.#told.join();
    if (hasChanged) this.#tell(missing);
    this.#timer = setTimeout(() => this.#look(), hasChanged ? LOOK_AFTER_LINE_MS : LOOK_MS);
  }

  #tell(missing: readonly number[]): void {
    const back = this.#told.filter((p) => !missing.includes(p));
    this.#told = missing;
    const text = missing.length === 0 ? "all partitions are in reach again" : "partitions are out of reach";
    this.#logger.warn({ link: this.#link.name, out_of_reach: missing, back }, text);
  }
}
