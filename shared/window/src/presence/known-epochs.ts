import { partitionOf } from "../redis/partitions.ts";

/**
 * The highest epoch of each partition that a pod knows of. Its registers, heartbeats and asserts carry it, and the clock that gives
 * epochs rises to it: so a replica that took over, and lacks the last of them, gives none twice.
 */
export class KnownEpochs {
  readonly #highest: number[];

  constructor(partitions: number) {
    this.#highest = Array(partitions).fill(0);
  }

  /** @param epoch given for the agent. */
  note(agent: string, epoch: number): void {
    const p = partitionOf(agent, this.#highest.length);
    if (epoch > this.highestIn(p)) this.#highest[p] = epoch;
  }

  /** 0 while none is known. */
  highestIn(partition: number): number {
    return this.#highest[partition] as number;
  }
}
