import { RedisLink } from "../src/redis/redis-link.ts";
import type { Reply } from "../src/redis/scripts.ts";
import { SCRIPTS, type ScriptName } from "../src/redis/scripts.ts";
import { type Bench, LOGGER } from "./kit.ts";

/** A link whose scripts are told the time: what depends on a millisecond is tested on that millisecond. */
export class ClockedLink extends RedisLink {
  /** Unix ms. */
  at = Date.now();

  /** One that is up, and ends with the bench. */
  static async of(bench: Bench): Promise<ClockedLink> {
    const link = new ClockedLink({ url: bench.redis.url, name: "clocked", logger: LOGGER });
    bench.later(() => link.stop());
    await link.start();
    return link;
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
