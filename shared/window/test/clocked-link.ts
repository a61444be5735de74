import { RedisLink } from "../src/redis/redis-link.ts";
import type { Reply } from "../src/redis/scripts.ts";
import { SCRIPTS, type ScriptName } from "../src/redis/scripts.ts";
import { type Bench, LOGGER } from "./kit.ts";

/** A link whose scripts are told the time: what depends on a millisecond is tested on that millisecond. */
export class ClockedLink extends RedisLink {
  /** Unix ms. */
  at = Date.now();

  constructor(bench: Bench) {
    super({ url: bench.redis.url, name: "clocked", logger: LOGGER });
    bench.later(() => this.stop());
  }

  override async run(
    script: ScriptName,
    keys: readonly string[],
    args: readonly (string | number)[] = [],
  ): Promise<Reply> {
    const time = `{ '${Math.floor(this.at / 1000)}', '${(this.at % 1000) * 1000}' }`;
    const lua = SCRIPTS[script].lua.replaceAll(/\b(?:redis\.)?call\('TIME'\)/g, time);
    return (await this.client.eval(lua, keys.length, ...keys, ...args)) as Reply;
  }
}
