import { once } from "node:events";
import { styleText } from "node:util";
import type { Output } from "./io.ts";

/** Control characters and marks of text direction: a terminal would act on those in texts that others wrote. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is escaped.
const UNPRINTABLE = /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;

const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;

/** A value as one line of JSON. */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replace(UNPRINTABLE, escaped);
}

/** A text that others wrote, for a line of text. */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** A text as one word of a shell's line. */
export function shellWord(text: string): string {
  return /^[\w./@:+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

export type Style = Parameters<typeof styleText>[0];

/** Styled where the output is a terminal that supports it. */
export function styled(output: Output, style: Style, text: string): string {
  return styleText(style, text, { stream: output });
}

/** Writes a line, and waits while the reader is slow. The signal ends the wait. */
export async function writeLine(output: Output, line: string, signal?: AbortSignal): Promise<void> {
  if (output.write(`${line}\n`) || signal?.aborted) return;
  await once(output, "drain", { ...(signal && { signal }) }).catch(() => {});
}
