import { MAX_SAID_CHARACTERS } from "./limits.ts";

/** Control characters, marks of text direction and halves of a character: a terminal would act on those in texts that others wrote. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Bidi_Control}\u2028\u2029]/gu;

const escaped = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** The beginning of what a relay says to people, so that anybody can show and log it as it is. */
export function shownText(text: string): string {
  return [...printable(text.slice(0, MAX_SAID_CHARACTERS))].slice(0, MAX_SAID_CHARACTERS).join("");
}

/** The same; undefined for what is no text. */
export function saidText(value: unknown): string | undefined {
  return typeof value === "string" ? shownText(value) : undefined;
}
