import { TestEnvironment } from "jest-environment-node";

/** V8's own collections leave what ended test files held: a worker would grow to gigabytes. */
const MOST_HEAP_BYTES = 200 * 2 ** 20;

/** Node's environment, which frees the memory of ended test files. `deploy/local/jest.mjs` has the flag for it. */
export default class extends TestEnvironment {
  async teardown() {
    await super.teardown();
    if (process.memoryUsage().heapUsed > MOST_HEAP_BYTES) globalThis.gc?.();
  }
}
