import type { Span } from "../../accounting.ts";
import { OrderedProcess } from "../../ordered-process.ts";
import type { Speech } from "./dialects.ts";
import type { Carried, Pace, Paced, Press } from "./pairs.ts";
import type { Beat, Order, Posts } from "./program.ts";

/** The load generator's process, as the benchmark drives it. */
export class Generator implements AsyncDisposable {
  readonly #process = new OrderedProcess<Order>(new URL("program.ts", import.meta.url));

  static async start(speech: Speech): Promise<Generator> {
    const generator = new Generator();
    await generator.#process.carryOut({ order: "speak", speech });
    return generator;
  }

  async pair(ports: readonly number[], targets: readonly string[]): Promise<void> {
    await this.#process.carryOut({ order: "pair", ports, targets });
  }

  async press(press: Press): Promise<Carried> {
    return (await this.#process.carryOut({ order: "press", ...press })) as Carried;
  }

  async pace(pace: Pace): Promise<Paced> {
    return (await this.#process.carryOut({ order: "pace", ...pace })) as Paced;
  }

  async gather(ports: readonly number[], connections: number, agentsEach: number): Promise<void> {
    await this.#process.carryOut({ order: "gather", ports, connections, agentsEach });
  }

  async beat(beat: Beat): Promise<Span & { readonly answered: number }> {
    return (await this.#process.carryOut({ order: "beat", ...beat })) as Span & { answered: number };
  }

  async post(posts: Posts): Promise<Span & { readonly accepted: number }> {
    return (await this.#process.carryOut({ order: "post", ...posts })) as Span & { accepted: number };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#process[Symbol.asyncDispose]();
  }
}
