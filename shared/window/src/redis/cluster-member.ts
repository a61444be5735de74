import { REDIS_LIMITS } from "./limits.ts";
import { isCutOff } from "./link-down.ts";
import { RedisLink } from "./redis-link.ts";

/** One primary of a cluster, and the calls that are under way there. */
export class ClusterMember {
  readonly link: RedisLink;
  /** Resolves when the link is up for the first time, or takes too long. */
  #starting: Promise<void> | undefined;
  #underWay = 0;
  /** When the server was last known to answer, and the other primaries to hear it, monotonic ms; undefined while both hold. */
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
      const unheardMs = this.link.downKind === "slots" ? REDIS_LIMITS.unheardMs : REDIS_LIMITS.pingIntervalMs;
      this.#fellSilent(this.#wasUp ? unheardMs : Number.POSITIVE_INFINITY);
    });
  }

  start(): void {
    this.#starting = this.link.start().finally(() => {
      this.#starting = undefined;
    });
  }

  /**
   * Since when a server may have been replaced unasked, monotonic ms: it cannot be reached, or is cut off from the other primaries, and
   * refuses everything. Minus infinity when it never answered this process, which may have started long after it died. Undefined of any
   * other.
   */
  get silentSince(): number | undefined {
    return this.#silentSince;
  }

  /**
   * Since when what it answered may be lacking where it was replaced: not all may have been received before it fell silent. Minus
   * infinity when nothing is known to have been received.
   */
  lackingSince(silentSince: number): number {
    return Math.min(silentSince, this.link.receivedUntil ?? Number.NEGATIVE_INFINITY);
  }

  /** Pending while the link is set up for the first time. */
  get starting(): Promise<void> | undefined {
    return this.link.up ? undefined : this.#starting;
  }

  async call<T>(send: (link: RedisLink) => Promise<T>): Promise<T> {
    this.#underWay += 1;
    try {
      const reply = await send(this.link);
      this.#silentSince = undefined;
      return reply;
    } catch (err) {
      if (isCutOff(err)) this.#fellSilent(REDIS_LIMITS.unheardMs);
      throw err;
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

  /** @param forMs for so long nobody may have heard it before that showed. */
  #fellSilent(forMs: number): void {
    this.#silentSince = Math.min(this.#silentSince ?? Number.POSITIVE_INFINITY, performance.now() - forMs);
  }

  #stopWhenIdle(): void {
    if (this.#isRetired && this.#underWay === 0) void this.link.stop();
  }
}
