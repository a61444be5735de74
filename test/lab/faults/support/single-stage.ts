import type { GuardedRelay } from "../../../support/guarded-redis.ts";
import { RedisProxy } from "../../../support/redis-proxy.ts";
import type { RedisUser } from "../../../support/test-redis.ts";
import type { WindowView } from "../../../support/window-view.ts";
import type { Fleet } from "../../fleet.ts";
import type { Stage, Wiring } from "../../stages.ts";

export type SingleFleet = Fleet<SingleStage>;

/** One Redis, as it is deployed. */
export class SingleStage implements Stage {
  readonly relay: GuardedRelay;
  readonly envelopesPerSecond: number;
  #view: WindowView | undefined;

  constructor(relay: GuardedRelay, envelopesPerSecond = 150) {
    this.relay = relay;
    this.envelopesPerSecond = envelopesPerSecond;
  }

  /** Looks into Redis, and does to it what no service may. */
  get view(): WindowView {
    this.#view ??= this.relay.view();
    return this.#view;
  }

  async wire(service: RedisUser): Promise<Wiring> {
    const { redis } = this.relay;
    const proxy = await new RedisProxy(redis.url).start();
    return { proxies: [proxy], settings: { REDIS_URL: proxy.urlFor(redis.urlFor(service)) }, nodeArguments: [] };
  }

  async counters(): Promise<Readonly<Record<string, number>>> {
    return await this.view.counters();
  }

  async flushScripts(): Promise<void> {
    await this.view.client.script("FLUSH");
  }

  async caughtUp(): Promise<void> {
    await this.view.client.ping();
  }

  async heal(): Promise<void> {
    await this.relay.redis.resume().catch(() => {});
  }
}
