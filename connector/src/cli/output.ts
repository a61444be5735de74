import { once } from "node:events";
import { styleText } from "node:util";
import type { Output } from "./command.ts";

/** What others wrote is printed with nothing that a terminal would obey, or that would turn the text around. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is taken out.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** A value as one line of JSON. */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE, escaped);
}

/** A text of others within a line of ours. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

export type Style = Parameters<typeof styleText>[0];

/** Styled where the output is a terminal that shows it. */
export function styled(output: Output, style: Style, text: string): string {
  return styleText(style, text, { stream: output });
}

/** Writes a line, and waits while the reader is slow; not for a reader that is gone. */
export async function writeLine(output: Output, line: string, signal?: AbortSignal): Promise<void> {
  if (output.write(`${line}\n`) || signal?.aborted) return;
  await once(output, "drain", { ...(signal && { signal }) }).catch(() => {});
}

/** What a command says beside its result, on stderr: in words, or as JSON lines for programs. */
export class Voice {
  readonly #output: Output;
  readonly #json: boolean;

  constructor(output: Output, json: boolean) {
    this.#output = output;
    this.#json = json;
  }

  /** @param event stands first in the JSON line. @param fields what a program needs and the words do not hold apart. */
  say(event: string, words: string, fields: object = {}, style: Style = "dim"): void {
    const line = this.#json
      ? jsonLine({ event, message: words, ...fields })
      : styled(this.#output, style, printable(words));
    this.#output.write(`${line}\n`);
  }

  warn(words: string): void {
    this.say("warning", words, {}, "yellow");
  }
}
