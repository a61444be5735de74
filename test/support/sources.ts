import { glob, readFile } from "node:fs/promises";

const REPOSITORY = new URL("../../", import.meta.url);
const NOT_OURS = new Set(["node_modules", "dist", ".local", ".git"]);

/** A file of the repository, and the comments in it. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
  /** Each comment on one line, without its markers; lines of comment that follow each other are one comment. */
  readonly comments: readonly string[];
}

/** Every file that can have comments. */
export async function sourceFiles(): Promise<SourceFile[]> {
  const files = await filesOf("**/{*.{ts,mjs,js,lua,py,yaml,yml,conf,sh,css},Dockerfile}");
  return files.map(({ path, text }) => ({ path, text, comments: commentsOf(path, text) }));
}

/** Every document and package file. */
export function documents(): Promise<Omit<SourceFile, "comments">[]> {
  return filesOf("**/*.{md,html,json}");
}

/** The files of the repository, without packages, build results and what is not in git. */
async function filesOf(pattern: string): Promise<Omit<SourceFile, "comments">[]> {
  const exclude = (path: string) => NOT_OURS.has(path.split("/").at(-1) ?? "");
  const paths: string[] = [];
  for await (const path of glob(pattern, { cwd: REPOSITORY, exclude })) paths.push(path);
  return await Promise.all(
    paths.toSorted().map(async (path) => ({ path, text: await readFile(new URL(path, REPOSITORY), "utf8") })),
  );
}

/** The marker with which a comment's line begins, by the file's name. */
function markerOf(path: string): RegExp {
  if (/\.(?:ts|mjs|js|css)$/.test(path)) return /^(?:\/\*\*?|\/\/|\*\/?)\s?/;
  return path.endsWith(".lua") ? /^--\s?/ : /^#\s?/;
}

function commentsOf(path: string, text: string): string[] {
  const marker = markerOf(path);
  const comments: string[][] = [];
  let isOpen = false;
  for (const line of text.split("\n").map((each) => each.trim())) {
    const isComment = marker.test(line);
    if (isComment && (!isOpen || line.startsWith("/*"))) comments.push([]);
    if (isComment) comments.at(-1)?.push(line.replace(marker, "").replace(/\s*\*\/$/, ""));
    isOpen = isComment;
  }
  return comments.map((lines) => lines.join(" "));
}
