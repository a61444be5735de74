import type { Failure } from "./failure.ts";
import type { Output } from "./io.ts";
import { jsonLine, lineFor, type Style, styled } from "./output.ts";

/** With the start of a process it is less than 3 s. */
export const SILENT_MS = 2000;

/** Reports on stderr what happens beside a command's result: as text, or as JSON lines for programs. */
export class Reporter {
  readonly #output: Output;
  readonly #json: boolean;
  readonly #said = new Set<string>();

  constructor(output: Output, json: boolean) {
    this.#output = output;
    this.#json = json;
  }

  /** @param event the first member of the JSON line. @param fields the values in the text, for programs. */
  report(event: string, text: string, fields: object = {}, style: Style = "dim"): void {
    const line = this.#json ? jsonLine({ event, message: text, ...fields }) : [styled(style, text)];
    this.#output.write(lineFor(this.#output, line));
  }

  /** Why a command cannot do what it was asked to. */
  fail({ code, message, hint, retry, outcome, outcomeText }: Failure): void {
    const text = ["relay:", message, hint, outcomeText].filter((part) => part !== "").join(" ");
    this.report("error", text, { code, hint, retry, outcome }, "red");
  }

  /** A read has to wait so many ms. */
  readonly waiting = (ms: number): void =>
    this.report("waiting", `The relay's limit for this address is reached: asking again in ${ms} ms.`, { ms });

  /** Says what a command waits for, where that takes longer than somebody at a prompt should wait without knowing. */
  async whileWaiting<T>(text: string, result: Promise<T>): Promise<T> {
    const timer = setTimeout(() => this.report("waiting", text), SILENT_MS);
    try {
      return await result;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Says why a command waits, once for each reason. */
  waitingOnce(text: string, fields?: object): void {
    if (this.#said.has(text)) return;
    this.#said.add(text);
    this.report("waiting", text, fields);
  }

  warn(text: string, fields?: object): void {
    this.report("warning", text, fields, "yellow");
  }

  warnOnce(text: string, fields?: object): void {
    if (this.#said.has(text)) return;
    this.#said.add(text);
    this.warn(text, fields);
  }
}
