import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import type { Span } from "../accounting.ts";
import type { Beat } from "./crowd.ts";
import type { Speech } from "./dialect.ts";
import type { Posts } from "./http.ts";
import type { Pace, Paced } from "./pace.ts";
import type { Carried, Press } from "./press.ts";
import type { Order } from "./program.ts";

/** An order that takes longer than this has failed. */
const PATIENCE_MS = 120_000;

/** The load generator's process, as the benchmark drives it. */
export class Generator implements AsyncDisposable {
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  static async start(speech: Speech): Promise<Generator> {
    const program = new URL("program.ts", import.meta.url);
    const generator = new Generator(fork(program, { serialization: "advanced" }));
    await generator.#carryOut({ order: "speak", speech });
    return generator;
  }

  async pair(ports: readonly number[], targets: readonly string[]): Promise<void> {
    await this.#carryOut({ order: "pair", ports, targets });
  }

  async press(press: Press): Promise<Carried> {
    return (await this.#carryOut({ order: "press", ...press })) as Carried;
  }

  async pace(pace: Pace): Promise<Paced> {
    return (await this.#carryOut({ order: "pace", ...pace })) as Paced;
  }

  async gather(ports: readonly number[], connections: number, agentsEach: number): Promise<void> {
    await this.#carryOut({ order: "gather", ports, connections, agentsEach });
  }

  async beat(beat: Beat): Promise<Span & { readonly answered: number }> {
    return (await this.#carryOut({ order: "beat", ...beat })) as Span & { answered: number };
  }

  async post(posts: Posts): Promise<Span & { readonly accepted: number }> {
    return (await this.#carryOut({ order: "post", ...posts })) as Span & { accepted: number };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  async #carryOut(order: Order): Promise<unknown> {
    const over = new AbortController();
    const signal = AbortSignal.any([over.signal, AbortSignal.timeout(PATIENCE_MS)]);
    const answered = once(this.#child, "message", { signal });
    const ended = once(this.#child, "exit", { signal }).then(() => {
      throw new Error(`The load generator ended at the order: ${order.order}`);
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
}
