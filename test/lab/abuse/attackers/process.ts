import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Launched, Order } from "../target.ts";

/** An attack that takes so much longer than it was told to has failed. */
const PATIENCE_MS = 20_000;

/** The attacker's process, as the measuring one drives it. */
export class AttackerProcess {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  /** Resolves when the attack is ready to be launched. */
  static async start(order: Order): Promise<AttackerProcess> {
    const attacker = new AttackerProcess(fork(new URL("program.ts", import.meta.url), { serialization: "advanced" }));
    await attacker.#tell(order);
    return attacker;
  }

  /** Resolves when the time of the attack is over; its connections stay until `stop`. */
  async launch(): Promise<Launched> {
    return (await this.#tell("launch")) as Launched;
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  async #tell(what: Order | "launch"): Promise<unknown> {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, AbortSignal.timeout(PATIENCE_MS)]);
    const answered = once(this.#child, "message", { signal });
    const ended = once(this.#child, "exit", { signal }).then(() => {
      throw new Error("The attacker's process ended by itself.");
    });
    this.#child.send(what);
    try {
      return (await Promise.race([answered, ended]))[0];
    } finally {
      ended.catch(() => {});
      answered.catch(() => {});
      over.abort();
    }
  }
}
