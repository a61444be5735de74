import { HIDDEN } from "./markdown.ts";

export interface Sentence {
  /** Where it begins in the text that was given. */
  readonly offset: number;
  readonly masked: string;
}

/** The end of a sentence, or of a link in a row of links. */
const END = new RegExp(`(?:[.!?…]["'”’)*_\\]${HIDDEN}]*|·)(?=\\s)`, "g");
const ABBREVIATION = /(?:^|[\s(["'])(?:e\.g|i\.e|cf|vs|approx|incl|resp)\.$/;

/** @param masked a text whose code and link targets are masked. */
export function sentencesOf(masked: string): Sentence[] {
  const ends = [...masked.matchAll(END)].filter((mark) => endsSentence(masked, mark));
  const starts = [0, ...ends.map(({ 0: mark, index }) => index + mark.length)];
  return starts
    .map((start, index) => {
      const part = masked.slice(start, starts[index + 1]);
      return { offset: start + part.length - part.trimStart().length, masked: part.trim() };
    })
    .filter((sentence) => wordsIn(sentence.masked) > 0);
}

function endsSentence(masked: string, { 0: mark, index }: RegExpExecArray): boolean {
  if (mark === "·") return true;
  const before = masked.slice(0, index + 1);
  if (ABBREVIATION.test(before)) return false;
  // An identifier in lower case may begin a sentence, but not after these marks.
  const isWeak = !mark.startsWith(".") || /(?:\betc|\.\.)\.$/.test(before);
  return !(isWeak && /^\s+\W*\p{Ll}/u.test(masked.slice(index + mark.length)));
}

/** Code of any length counts as one word; dashes and other signs count as none. */
export function wordsIn(masked: string): number {
  return masked.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;
}

/** One line, without marks of emphasis and links. */
export function plain(masked: string): string {
  return masked
    .replaceAll(HIDDEN, "")
    .replace(/[*[\]]/g, "")
    .replace(/\s+/g, " ")
    .trim();
}
