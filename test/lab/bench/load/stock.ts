import { FIN, frameBytes, writeFrame } from "../../frames.ts";

/** How many frames are made at once when the stock has run out. */
const LATE = 64;
/** So many are enough when they can go out again and again. */
const REPEATED = 512;

/** The frames that one sender will send, made ahead, side by side in memory, so that many leave in one write. */
export class Stock {
  readonly #make: () => string;
  readonly #opcode: number;
  readonly #repeatable: boolean;
  #slab: Buffer = Buffer.alloc(0);
  /** Where each frame begins, and the last one ends. */
  #bounds: number[] = [0];
  #next = 0;
  /** Frames that had to be made while the load was on: then the generator is slower than it could be. */
  late = 0;

  /** @param options.make the next message. @param options.repeatable the same frames may go out again and again. */
  constructor(options: { make: () => string; opcode: number; repeatable: boolean }) {
    this.#make = options.make;
    this.#opcode = options.opcode;
    this.#repeatable = options.repeatable;
  }

  /** Makes frames until so many are there. What stood before is dropped only when it is used up. */
  fill(count: number): void {
    const wanted = this.#repeatable ? REPEATED : count;
    const missing = wanted - (this.#bounds.length - 1 - this.#next);
    if (missing <= 0) return;
    const messages = Array.from({ length: missing }, this.#make);
    const kept = this.#slab.subarray(this.#bounds[this.#next], this.#bounds.at(-1));
    const room = messages.reduce((sum, message) => sum + frameBytes(Buffer.byteLength(message)), kept.length);
    const slab = Buffer.allocUnsafe(room);
    const shift = this.#bounds[this.#next] as number;
    const bounds = this.#bounds.slice(this.#next).map((at) => at - shift);
    let end = kept.copy(slab);
    for (const message of messages) {
      end = writeFrame(slab, end, message, FIN | this.#opcode);
      bounds.push(end);
    }
    this.#slab = slab;
    this.#bounds = bounds;
    this.#next = 0;
  }

  /** The next `count` frames. */
  take(count: number): Buffer {
    if (this.#next + count > this.#bounds.length - 1) this.#replenish(count);
    const from = this.#bounds[this.#next];
    this.#next += count;
    return this.#slab.subarray(from, this.#bounds[this.#next]);
  }

  #replenish(count: number): void {
    if (this.#repeatable && count <= this.#bounds.length - 1) {
      this.#next = 0;
      return;
    }
    this.fill(Math.max(count, LATE));
    this.late += Math.max(count, LATE);
  }
}
