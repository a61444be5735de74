import type { Logger } from "relay-runtime/logging.ts";
import { ClockOffset } from "./clock-offset.ts";
import { RedisClock, timeIn } from "./redis-clock.ts";
import { RedisMemory } from "./redis-memory.ts";
import { ReplicaProgress, type Replicas } from "./replica-progress.ts";

/** What is known of a Redis by its INFO: how full it is, what time it has, and how far its replicas are. */
export class ServerInfo {
  readonly memory: RedisMemory;
  readonly clock = new RedisClock();
  readonly #clockOffset: ClockOffset;
  readonly #replicas = new ReplicaProgress();
  readonly #isNode: boolean;

  /** @param options.isNode true for a node of a cluster. */
  constructor({
    name,
    logger,
    isNode = false,
  }: { readonly name: string; readonly logger: Logger; readonly isNode?: boolean }) {
    this.memory = new RedisMemory(logger);
    this.#clockOffset = new ClockOffset(name, logger);
    this.#isNode = isNode;
  }

  get receivedUntil(): number | undefined {
    return this.#replicas.receivedUntil;
  }

  get replicas(): Replicas | undefined {
    return this.#replicas.replicas;
  }

  get clockOffsetMs(): number {
    return this.#clockOffset.ms;
  }

  /** @param ask for INFO. @returns its text. */
  async read(ask: () => Promise<string>): Promise<string> {
    const [sentAt, asked] = [performance.now(), Date.now()];
    const info = await ask();
    const now = timeIn(info);
    if (now !== undefined) {
      this.clock.told(now, sentAt, performance.now());
      // What it reads is up to a millisecond old.
      this.#clockOffset.told(now, asked, Date.now() + 1);
    }
    if (this.#isNode) this.#replicas.told(info, sentAt);
    this.memory.update(info);
    return info;
  }
}
