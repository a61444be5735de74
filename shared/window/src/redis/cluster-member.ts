import { REDIS_LIMITS } from "./limits.ts";
import { RedisLink } from "./redis-link.ts";

/** One primary of a cluster, and the calls that are under way there. */
export class ClusterMember {
  readonly link: RedisLink;
  /** Resolves when the link is up for the first time, or takes too long. */
  #starting: Promise<void> | undefined;
  #underWay = 0;
  /** When the server was last known to answer, monotonic ms; undefined while the link is up. */
  #silentSince: number | undefined;
  #wasUp = false;
  #isRetired = false;

  constructor(options: ConstructorParameters<typeof RedisLink>[0]) {
    this.link = new RedisLink(options);
    this.link.onUp(() => {
      this.#silentSince = undefined;
      this.#wasUp = true;
    });
    this.link.onDown(() => {
      const unheardMs = this.#wasUp ? REDIS_LIMITS.pingIntervalMs : Number.POSITIVE_INFINITY;
      this.#silentSince ??= performance.now() - unheardMs;
    });
  }

  start(): void {
    this.#starting = this.link.start().finally(() => {
      this.#starting = undefined;
    });
  }

  /**
   * When a server that cannot be reached was last known to answer, monotonic ms: minus infinity when it never answered this process,
   * which may have started long after it died. Undefined of any other.
   */
  get silentSince(): number | undefined {
    return this.#silentSince;
  }

  /** Pending while the link is set up for the first time. */
  get starting(): Promise<void> | undefined {
    return this.link.up ? undefined : this.#starting;
  }

  async call<T>(send: (link: RedisLink) => Promise<T>): Promise<T> {
    this.#underWay += 1;
    try {
      return await send(this.link);
    } finally {
      this.#underWay -= 1;
      this.#stopWhenIdle();
    }
  }

  /** Stops the link once the calls that are under way have settled; no other may begin. */
  retire(): void {
    this.#isRetired = true;
    this.#stopWhenIdle();
  }

  #stopWhenIdle(): void {
    if (this.#isRetired && this.#underWay === 0) void this.link.stop();
  }
}
