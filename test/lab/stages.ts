import type { RedisProxy } from "../support/redis-proxy.ts";
import type { TestRelay } from "../support/relay.ts";
import type { RedisUser } from "../support/test-redis.ts";

/** How a process reaches Redis: through proxies of its own. */
export interface Wiring {
  readonly proxies: readonly RedisProxy[];
  readonly settings: Readonly<Record<string, string>>;
  /** Arguments of Node itself. */
  readonly nodeArguments: readonly string[];
}

/** The Redis, one or a cluster, over which services run. */
export interface Stage {
  readonly relay: TestRelay;
  /** What agents send each other all the time while faults are injected. */
  readonly envelopesPerSecond: number;
  /** Proxies for a process that is about to start. */
  wire(service: RedisUser): Promise<Wiring>;
  /** Of acceptance, over all partitions. */
  counters(): Promise<Readonly<Record<string, number>>>;
  /** One Redis has no scripts any more. */
  flushScripts(): Promise<void>;
  /** Resolves when each Redis has come to all that was there for it before, the ends of connections too. */
  caughtUp(): Promise<void>;
  /** Ends what a fault left behind: each Redis is there and answers. */
  heal(): Promise<void>;
}
