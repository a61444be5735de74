/** Parts of the project's Markdown documents, for tests that hold them to the code. */

/** Cells of the table between `<!-- name … -->` and `<!-- /name -->`, the head left out. */
export function rowsBetween(document: string, name: string): string[][] {
  const part = new RegExp(`<!-- ${name}: [^>]*-->([^]*?)<!-- /${name} -->`).exec(document)?.[1] ?? "";
  const rows = part.split("\n").filter((line) => line.startsWith("|"));
  return rows.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split("|")
      .map((cell) => cell.trim()),
  );
}

/** The sections of a document, as GitHub names them in links. */
export function sectionsOf(markdown: string): string[] {
  const titles = [...markdown.replace(/^```[\s\S]*?^```/gm, "").matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) => title);
  const slugs = titles.map((title) =>
    title
      .toLowerCase()
      .replace(/[^\w\s-]/g, "")
      .replaceAll(" ", "-"),
  );
  return slugs.map((slug, index) => {
    const earlier = slugs.slice(0, index).filter((other) => other === slug).length;
    return earlier === 0 ? slug : `${slug}-${earlier}`;
  });
}

/** The text of a fenced block by its info string. */
export function codeBlock(document: string, info: string): string {
  const [, block] = new RegExp(`^\`\`\`${info}\n([^]*?)^\`\`\``, "m").exec(document) ?? [];
  if (block === undefined) throw new Error(`There is no block: ${info}`);
  return block;
}
