import { TestEnvironment } from "jest-environment-node";

/** V8's own collections leave what ended test files held: a worker would grow to gigabytes. */
const MOST_HEAP_BYTES = 200 * 2 ** 20;

/** What Node's WebSocket runs on. The environment has the globals of Node that have a name. */
const DISPATCHER = Symbol.for("undici.globalDispatcher.1");
// Node makes it when the class is read first.
void globalThis.WebSocket;

/** Node's environment, which frees the memory of ended test files. `deploy/local/jest.mjs` has the flag for it. */
export default class extends TestEnvironment {
  async setup() {
    await super.setup();
    this.global[DISPATCHER] = globalThis[DISPATCHER];
  }

  async teardown() {
    await super.teardown();
    if (process.memoryUsage().heapUsed > MOST_HEAP_BYTES) globalThis.gc?.();
  }
}
