import { CONNECTION_LIMITS } from "protocol/contract/limits.ts";

/** What a connection may send before its first valid envelope. Source: docs/protocol.md#frames. */
export class Allowance {
  #frames = 0;
  #bytes = 0;

  /** False when the frame is one too many. */
  takeFrame(): boolean {
    this.#frames += 1;
    return this.#frames <= CONNECTION_LIMITS.unregisteredFrames;
  }

  /** False when they are too many. */
  takeBytes(count: number): boolean {
    this.#bytes += count;
    return this.#bytes <= CONNECTION_LIMITS.unregisteredBytes;
  }
}
