import { setTimeout as delay } from "node:timers/promises";
import type { Pids } from "../../accounting.ts";
import { OrderedProcess } from "../../ordered-process.ts";
import type { Fill, Filled, Offer, Offered, Order, Place } from "./acceptance-pods.ts";

const LOST_AFTER_MS = 5000;
const PODS = new URL("acceptance-pods.ts", import.meta.url);

/** Load on Redis alone: pods without websockets and signatures, in two processes, one that sends and one that receives. */
export class AcceptanceLoad implements AsyncDisposable {
  readonly #receiving = new OrderedProcess<Order>(PODS);
  readonly #sending = new OrderedProcess<Order>(PODS);
  readonly #targets: readonly string[];

  private constructor(targets: readonly string[]) {
    this.#targets = targets;
  }

  /** @param pods how many send. */
  static async start(place: Place, pods: number, targets: readonly string[]): Promise<AcceptanceLoad> {
    const load = new AcceptanceLoad(targets);
    await load.#receiving.carryOut({ order: "openReceiver", ...place, targets });
    await load.#sending.carryOut({ order: "openSenders", ...place, pods });
    return load;
  }

  /** Its own processes. */
  get pids(): Pids {
    return { sending: this.#sending.pid, receiving: this.#receiving.pid };
  }

  /** @throws Error when an envelope does not reach the receiving pod. */
  async offer(offer: Omit<Offer, "targets">): Promise<Offered> {
    return await this.#send<Offered>({ order: "offer", ...offer, targets: this.#targets });
  }

  /** @throws Error when an envelope does not reach the receiving pod. */
  async fill(fill: Omit<Fill, "targets">): Promise<Filled> {
    return await this.#send<Filled>({ order: "fill", ...fill, targets: this.#targets });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#sending[Symbol.asyncDispose](), this.#receiving[Symbol.asyncDispose]()]);
  }

  async #send<Sent extends Filled>(order: Order): Promise<Sent> {
    await this.#receiving.carryOut({ order: "beat" });
    const before = await this.#count();
    const sent = (await this.#sending.carryOut(order)) as Sent;
    const deadline = performance.now() + LOST_AFTER_MS;
    while ((await this.#count()) < before + sent.deliveredInAll) {
      if (performance.now() > deadline) throw new Error("Messages were lost.");
      await delay(1);
    }
    return sent;
  }

  async #count(): Promise<number> {
    return (await this.#receiving.carryOut({ order: "count" })) as number;
  }
}
