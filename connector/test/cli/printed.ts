import { Writable } from "node:stream";
import { until } from "../../../test/support/until.ts";
import { jsonLines } from "../kit.ts";

/** What a program has printed so far. */
export class Printed {
  stdout = "";
  stderr = "";

  /** The JSON lines on stdout. */
  // biome-ignore lint/suspicious/noExplicitAny: what a program prints has no type yet.
  get lines(): any[] {
    return jsonLines(this.stdout);
  }

  /** The JSON lines on stderr, of commands with `--json`. */
  // biome-ignore lint/suspicious/noExplicitAny: what a program prints has no type yet.
  get reports(): any[] {
    return jsonLines(this.stderr);
  }

  /** Resolves when stderr has this many reports of an event. */
  async reported(event: string, times = 1): Promise<void> {
    const count = () => this.reports.filter((report) => report.event === event).length;
    await this.#until(`it reported ${event}, ${times} times`, () => count() >= times);
  }

  /** Resolves when stderr has a text this many times. */
  async wrote(text: string, times = 1): Promise<void> {
    await this.#until(`it wrote ${text}, ${times} times`, () => this.stderr.split(text).length > times);
  }

  async prints(count: number): Promise<void> {
    await this.#until(`it printed ${count} lines`, () => this.lines.length >= count);
  }

  /** @returns a stream that keeps what is written to it, and passes it on to another. */
  collect(name: "stdout" | "stderr", other?: Writable): Writable {
    return new Writable({
      write: (chunk, _, done) => {
        this[name] += String(chunk);
        other?.write(chunk);
        done();
      },
    });
  }

  async #until(name: string, condition: () => boolean): Promise<void> {
    await until(name, condition, 20_000).catch((error) => {
      throw new Error(`${error.message}\n${this.stdout}\n${this.stderr}`);
    });
  }
}
