import type { Block } from "./markdown.ts";

/** The texts of a help page: its paragraphs, and the description of each option and command. */
export function helpBlocksOf(help: string): Block[] {
  const blocks: Block[] = [];
  let open: { start: number; end: number; line: number; isOption: boolean } | undefined;
  const close = () => {
    const text = open === undefined ? "" : help.slice(open.start, open.end);
    if (open !== undefined && text.trim() !== "")
      blocks.push({ kind: "paragraph", line: open.line, text, masked: text });
    open = undefined;
  };

  let start = 0;
  for (const [index, written] of help.split("\n").entries()) {
    const end = start + written.length;
    const isOption = /^ {2}\S/.test(written);
    if (written.trim() === "" || isOption || (open?.isOption && /^\S/.test(written))) close();
    if (isOption) {
      const term = /^ {2}\S.*? {2,}(?=\S)/.exec(written)?.[0].length ?? written.length;
      open = { start: start + term, end, line: index + 1, isOption };
    } else if (written.trim() !== "") open = { start, line: index + 1, isOption, ...open, end };
    start = end + 1;
  }
  close();
  return blocks;
}
