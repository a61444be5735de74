/** The texts of a Markdown document, without code blocks, comments and the targets of links. */

/** A text that is read in one go. `masked` is as long as `text`: code is `X`, and a link's target is `HIDDEN`. */
export interface Block {
  readonly kind: "heading" | "paragraph" | "cell";
  readonly line: number;
  readonly text: string;
  readonly masked: string;
}

/** Takes no room and ends no word. */
export const HIDDEN = "\u2060";

export function blocksOf(document: string): Block[] {
  const masked = mask(document);
  const blocks: Block[] = [];
  let open: { start: number; end: number; line: number } | undefined;

  const add = (kind: Block["kind"], start: number, end: number, line: number) => {
    const block = { kind, line, text: document.slice(start, end), masked: masked.slice(start, end) };
    if (block.masked.trim() !== "") blocks.push(block);
  };
  const close = () => {
    if (open !== undefined) add("paragraph", open.start, open.end, open.line);
    open = undefined;
  };

  for (const { line, start, end, seen } of linesOf(document, masked)) {
    const marker = /^\s*(?:[-*+]|\d+[.)])\s+/.exec(seen)?.[0].length;
    if (/^[\s:-]*$/.test(seen)) close();
    else if (isRow(seen)) {
      close();
      for (const [from, to] of cellsOf(seen)) add("cell", start + from, start + to, line);
    } else if (/^#{1,6}\s/.test(seen)) {
      close();
      add("heading", start + seen.indexOf(" "), end, line);
    } else if (marker !== undefined) {
      close();
      open = { start: start + marker, end, line };
    } else open = { start, line, ...open, end };
  }
  close();
  return blocks;
}

/** Lines that a writer can wrap: no code, no row of a table, no single long word. */
export function wrappableLines(document: string): Line[] {
  return linesOf(document, mask(document)).filter(({ seen }) => /\w\S*\s+\S/.test(seen) && !isRow(seen));
}

interface Line {
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** The same, masked. */
  readonly seen: string;
}

function linesOf(document: string, masked: string): Line[] {
  let start = 0;
  return document.split("\n").map((text, index) => {
    const from = start;
    const end = from + text.length;
    start = end + 1;
    return { line: index + 1, start: from, end, text, seen: masked.slice(from, end) };
  });
}

function isRow(seen: string): boolean {
  return /^\s*\|/.test(seen);
}

/** Offsets of a row's cells. The dashes under a head count as cells without words. */
function cellsOf(row: string): [number, number][] {
  const bars = [...row.matchAll(/(?<!\\)\|/g)].map(({ index }) => index);
  return bars.map((bar, index) => [bar + 1, bars[index + 1] ?? row.length]);
}

/** Of the same length as the document. The line break within a piece of code is masked with it. */
function mask(document: string): string {
  const blank = (text: string) => text.replace(/[^\n]/g, " ");
  return document
    .replace(/^[ \t]*(```+|~~~+)[^\n]*\n(?:[^\n]*\n)*?[ \t]*\1[ \t]*$/gm, blank)
    .replace(/<!--[\s\S]*?-->/g, blank)
    .replace(/(?<!`)(`+)(?!`)(?:[^\n]|\n(?!\n))*?(?<!`)\1(?!`)/g, (code) => "X".repeat(code.length))
    .replace(/(?<=\])\((?:[^()\s]|\([^()\s]*\))*(?: "[^"]*")?\)/g, (target) => HIDDEN.repeat(target.length));
}
