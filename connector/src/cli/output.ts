import { once } from "node:events";
import { styleText } from "node:util";
import { printable } from "../said-text.ts";
import type { Output } from "./io.ts";

/** Every line goes through this file, which escapes what a terminal would act on. */

/** A value as one line of JSON. */
export function jsonLine(value: unknown): string {
  return printable(JSON.stringify(value));
}

/** A text as one word of a shell's line. */
export function shellWord(text: string): string {
  return /^[\w./@:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export type Style = Parameters<typeof styleText>[0];

/** A text that is styled where the output is a terminal that supports it. */
export interface Styled {
  readonly style: Style;
  readonly text: string;
}

/** What one line shows. Nothing in its texts can end it, or act on a terminal. */
export type Line = string | readonly (string | Styled)[];

export function styled(style: Style, text: string): Styled {
  return { style, text };
}

/** The line with its end, as it is written. */
export function lineFor(output: Output, line: Line): string {
  const parts = (typeof line === "string" ? [line] : line).map((part) => {
    if (typeof part === "string") return printable(part);
    // FORCE_COLOR would have styleText colour what no terminal shows.
    return output.isTTY ? styleText(part.style, printable(part.text), { stream: output }) : printable(part.text);
  });
  return `${parts.join("")}\n`;
}

/** Writes a line, and waits while the reader is slow. The signal ends the wait. */
export async function writeLine(output: Output, line: Line, signal?: AbortSignal): Promise<void> {
  if (output.write(lineFor(output, line)) || signal?.aborted) return;
  await once(output, "drain", { ...(signal && { signal }) }).catch(() => {});
}
