import type { Output } from "./io.ts";
import { jsonLine, lineFor, type Style, styled } from "./output.ts";

/** Reports on stderr what happens beside a command's result: as text, or as JSON lines for programs. */
export class Reporter {
  readonly #output: Output;
  readonly #json: boolean;

  constructor(output: Output, json: boolean) {
    this.#output = output;
    this.#json = json;
  }

  /** @param event the first member of the JSON line. @param fields the values in the text, for programs. */
  report(event: string, text: string, fields: object = {}, style: Style = "dim"): void {
    const line = this.#json ? jsonLine({ event, message: text, ...fields }) : [styled(style, text)];
    this.#output.write(lineFor(this.#output, line));
  }

  /** A read has to wait so many ms. */
  readonly waiting = (ms: number): void =>
    this.report("waiting", `The relay's limit for this address is reached: asking again in ${ms} ms.`, { ms });

  warn(text: string, fields?: object): void {
    this.report("warning", text, fields, "yellow");
  }
}
