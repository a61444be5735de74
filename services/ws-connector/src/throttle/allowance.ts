import { CONNECTION_LIMITS } from "relay-protocol/wire/limits.ts";

/** What a connection may send before its first valid envelope. Source: docs/protocol.md#frames. */
export class Allowance {
  #frames = 0;
  #bytes = 0;

  /** False when the frame is one too many. */
  takeFrame(): boolean {
    this.#frames += 1;
    return this.#frames <= CONNECTION_LIMITS.unregisteredFrames;
  }

  takeBytes(count: number): void {
    this.#bytes += count;
  }

  /** False when more were taken than there are. */
  get hasBytes(): boolean {
    return this.#bytes <= CONNECTION_LIMITS.unregisteredBytes;
  }
}
