import { helpBlocksOf } from "./help.ts";
import { type Block, blocksOf, wrappableLines } from "./markdown.ts";
import { bannedIn } from "./patterns.ts";
import { plain, sentencesOf, wordsIn } from "./sentences.ts";

/** What makes a text hard to read. The names are those of the record. */
export const KINDS = {
  sentences: "sentences over 25 words",
  patterns: "banned turns of phrase",
  lines: "lines that are too long",
  cells: "cells over 120 characters",
  paragraphs: "paragraphs over 80 words",
  length: "lines of help beyond the 25th",
} as const;
export type Kind = keyof typeof KINDS;

export interface Place {
  readonly kind: Kind;
  /** A line, or an entry of a catalogue. */
  readonly at: string;
  readonly text: string;
}

export function placesInMarkdown(document: string): Place[] {
  const cells = blocksOf(document).filter(({ kind, masked }) => kind === "cell" && plain(masked).length > 120);
  return [
    ...blocksOf(document).flatMap((block) => placesInBlock(block)),
    ...longLines(wrappableLines(document), 120),
    ...cells.map(({ line, text }) => ({ kind: "cells", at: `line ${line}`, text: text.trim() }) as const),
  ];
}

/** @param at its name in its catalogue. */
export function placesInEntry(at: string, text: string): Place[] {
  return blocksOf(text).flatMap((block) => placesInBlock(block, at));
}

export function placesInHelp(text: string): Place[] {
  const lines = text.trimEnd().split("\n");
  const numbered = lines.map((line, index) => ({ line: index + 1, text: line }));
  return [
    ...helpBlocksOf(text).flatMap((block) => placesInBlock(block)),
    ...longLines(numbered, 80),
    ...numbered.slice(25).map((line) => ({ kind: "length", at: `line ${line.line}`, text: line.text }) as const),
  ];
}

function placesInBlock(block: Block, entry?: string): Place[] {
  const places: Place[] = [];
  for (const { offset, masked } of sentencesOf(block.masked)) {
    const at = entry ?? `line ${block.line + (block.text.slice(0, offset).match(/\n/g) ?? []).length}`;
    const text = block.text.slice(offset, offset + masked.length).replace(/\s+/g, " ");
    if (wordsIn(masked) > 25) places.push({ kind: "sentences", at, text });
    const isWhole = block.kind === "paragraph" || (block.kind === "cell" && masked.endsWith("."));
    for (const words of bannedIn(plain(masked), isWhole))
      places.push({ kind: "patterns", at, text: `"${words.trim()}" in: ${text}` });
  }
  if (block.kind === "paragraph" && wordsIn(block.masked) > 80)
    places.push({ kind: "paragraphs", at: entry ?? `line ${block.line}`, text: block.text.replace(/\s+/g, " ") });
  return places;
}

function longLines(lines: readonly { line: number; text: string }[], most: number): Place[] {
  const long = lines.filter(({ text }) => text.length > most);
  return long.map(({ line, text }) => ({ kind: "lines", at: `line ${line}`, text }));
}
