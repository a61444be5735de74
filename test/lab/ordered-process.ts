import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";

const PATIENCE_MS = 120_000;

/** A process of the lab, which does one order after the other and answers each with what came of it. */
export class OrderedProcess<Order extends { readonly order: string }> implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #patienceMs: number;

  /** @param program a TypeScript file that calls `takeOrders`. @param patienceMs an order that takes longer has failed. */
  constructor(program: URL, patienceMs = PATIENCE_MS) {
    this.#child = fork(program, { serialization: "advanced" });
    this.#patienceMs = patienceMs;
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  /** @throws Error when the process ends, which it does when an order fails, or when the order takes too long. */
  async carryOut(order: Order): Promise<unknown> {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, AbortSignal.timeout(this.#patienceMs)]);
    const answered = once(this.#child, "message", { signal });
    const ended = once(this.#child, "exit", { signal }).then(() => {
      throw new Error(`The process ended at the order: ${order.order}`);
    });
    this.#child.send(order);
    try {
      const [{ done }] = (await Promise.race([answered, ended])) as [{ done: unknown }];
      return done;
    } finally {
      ended.catch(() => {});
      answered.catch(() => {});
      over.abort();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }
}

/** In such a process: does what it is told, until whoever tells it has gone. */
export function takeOrders<Order>(carryOut: (order: Order) => Promise<unknown>): void {
  process.on("message", async (order: Order) => {
    process.send?.({ done: await carryOut(order) });
  });
  process.on("disconnect", () => process.exit(0));
}
