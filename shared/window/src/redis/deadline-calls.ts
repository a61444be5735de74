import { setTimeout as delay } from "node:timers/promises";
import type { Logger } from "relay-runtime/logging.ts";
import { REDIS_LIMITS } from "./limits.ts";
import { LateCallError } from "./link-down.ts";
import type { RedisClock } from "./redis-clock.ts";
import type { Reply, ScriptName } from "./scripts.ts";
import { unavailable } from "./unavailable.ts";

/** How often a call is sent that Redis came to after its deadline. */
const ATTEMPTS = 2;

export interface DeadlineCallsOptions {
  readonly clock: RedisClock;
  readonly logger: Logger;
  readonly run: (script: ScriptName, keys: readonly string[], args: readonly (string | number)[]) => Promise<Reply>;
  /** True when this side gave a connection up then or later. @param sentAt monotonic ms. */
  readonly gaveUpSince: (sentAt: number) => boolean;
}

/**
 * Calls of scripts that are told until when they may do anything, by the clock of their Redis. Whoever was told
 * `unavailable` can rely on it: Redis does not come to the call later.
 */
export class DeadlineCalls {
  readonly #options: DeadlineCallsOptions;

  constructor(options: DeadlineCallsOptions) {
    this.#options = options;
  }

  /**
   * What came too late is sent once more, since all that is wrong may be what was known of the clock of Redis.
   * @throws an error `unavailable`: of the link, or after the last attempt.
   */
  async run(script: ScriptName, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply[]> {
    const { clock, logger } = this.#options;
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const sentAt = performance.now();
      const reply = await this.#runUntilDeadline(sentAt, script, keys, args);
      const [outcome, now] = reply;
      if (outcome !== "late") return reply;
      clock.told(Number(now), sentAt, performance.now());
    }
    logger.warn({ script }, "redis came to a script after its deadline");
    throw unavailable(new LateCallError());
  }

  /**
   * A call on a connection that was given up before its answer is over when its deadline is: until then Redis, which may only
   * have been slow, may come to it. @param sentAt monotonic ms.
   */
  async #runUntilDeadline(
    sentAt: number,
    script: ScriptName,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<Reply[]> {
    const { clock, run, gaveUpSince } = this.#options;
    const endsAt = sentAt + REDIS_LIMITS.commandTimeoutMs;
    try {
      return (await run(script, keys, [Math.floor(clock.at(endsAt)), ...args])) as Reply[];
    } catch (err) {
      if (gaveUpSince(sentAt)) await delay(Math.max(0, endsAt - performance.now()), undefined, { ref: false });
      throw err;
    }
  }
}
