import { TestEnvironment } from "jest-environment-node";

/** V8 would let the heap of a worker grow to gigabytes before it frees what ended test files left. */
const MOST_HEAP_BYTES = 250 * 2 ** 20;

/** Node's environment, which frees the memory of ended test files. It needs `--expose-gc`. */
export default class extends TestEnvironment {
  async teardown() {
    await super.teardown();
    if (process.memoryUsage().heapUsed > MOST_HEAP_BYTES) globalThis.gc?.();
  }
}
