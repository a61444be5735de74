import { MAX_SAID_CHARACTERS } from "./limits.ts";

/**
 * Control characters, what nobody sees (marks of text direction, zero width, tags) and halves of a character, in texts that
 * others wrote: a terminal would act on some, and the others could say what only a program reads. What makes one emoji of
 * several characters is seen.
 */
const UNPRINTABLE =
  /(?!(?<=\p{Extended_Pictographic})\ufe0f|(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}]\ufe0f?)\u200d(?=\p{Extended_Pictographic}))[\p{Cc}\p{Cs}\p{Default_Ignorable_Code_Point}\u2028\u2029]/gu;

/** As JSON escapes it: each half of a character beyond the first plane by itself. */
const escaped = (char: string) =>
  char
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");

export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escaped);
}

/** The same of a JSON text, for who is shown its values and not the text: they show the escapes, too. */
export function printableValues(json: string): string {
  return json.replace(UNPRINTABLE, (char) => escaped(char).replaceAll("\\", "\\\\"));
}

/** The beginning of what a relay says to people, so that anybody can show and log it as it is. */
export function shownText(text: string): string {
  return [...printable(text.slice(0, MAX_SAID_CHARACTERS))].slice(0, MAX_SAID_CHARACTERS).join("");
}

/** The same; undefined for what is no text. */
export function saidText(value: unknown): string | undefined {
  return typeof value === "string" ? shownText(value) : undefined;
}
